-- What the specs share; the runner installs it before each of them.

insert into idem.policies (name, on_lapse) values ('again', 'retry');

create function pay(args jsonb) returns idem.response language sql as $$
    select 200, null::jsonb, null::bytea
$$;

-- A call that may be refused: its value, or its SQLSTATE.
create function attempt(call text) returns text language plpgsql as $$
declare
    answer text;
begin
    execute 'select ' || call into answer;
    return answer;
exception when others then
    return sqlstate;
end
$$;

-- The same for several calls, each of which is undone: asking changes nothing, and keeps no lock.
create function asked(names text[], calls text[]) returns table (call text, answer text) language plpgsql as $$
begin
    for i in 1..cardinality(calls) loop
        call := names[i];
        begin
            execute 'select ' || calls[i] into answer;
            raise exception using errcode = 'UNDO1';
        exception
            when sqlstate 'UNDO1' then null;
            when others then answer := sqlstate;
        end;
        return next;
    end loop;
end
$$;

-- The calls that wait for nobody: outcome, attempt, status. A leased reserve may follow no write, even one that is
-- undone, so it comes first.
create function answers(policy text default 'default') returns table (call text, answer text) language sql as $$
    select asked.*
    from asked(
        array['lookup', 'reserve leased', 'reserve', 'another request', 'run', 'once', 'once_many'],
        array[
            $call$concat_ws(' ', outcome, attempt, status) from idem.lookup('shop', 'k')$call$,
            format(
                $call$concat_ws(' ', outcome, attempt, status)
                from idem.reserve('shop', 'k', '\x01', 'leased', policy => %L)$call$, policy
            ),
            format(
                $call$concat_ws(' ', outcome, attempt, status)
                from idem.reserve('shop', 'k', '\x01', policy => %L)$call$, policy
            ),
            format(
                $call$concat_ws(' ', outcome, attempt, status)
                from idem.reserve('shop', 'k', '\x02', policy => %L)$call$, policy
            ),
            format(
                $call$concat_ws(' ', outcome, attempt, status)
                from idem.run('shop', 'k', '\x01', 'pay(jsonb)', '{}', %L)$call$, policy
            ),
            $call$idem.once('shop', 'k')$call$,
            $call$outcome from idem.once_many('shop', '{k}')$call$
        ]
    ) as asked
$$;

-- The calls of the owner, which may wait for the row. The owner of every spec has the token of ones, its heir twos.
create function owner_answers() returns table (call text, answer text) language sql as $$
    select asked.*
    from asked(
        array['extend', 'checkpoint', 'defer', 'release', 'complete'],
        array[
            $call$idem.extend('shop', 'k', '11111111-1111-4111-8111-111111111111') is not null$call$,
            $call$idem.checkpoint('shop', 'k', '11111111-1111-4111-8111-111111111111', 'charged')$call$,
            $call$idem.defer('shop', 'k', '11111111-1111-4111-8111-111111111111')$call$,
            $call$idem.release('shop', 'k', '11111111-1111-4111-8111-111111111111')$call$,
            $call$idem.complete('shop', 'k', '11111111-1111-4111-8111-111111111111', 201)$call$
        ]
    ) as asked
$$;
