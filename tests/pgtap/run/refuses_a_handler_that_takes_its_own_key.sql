begin;
select plan(9);

\ir ../refusal.psql
insert into idem.policies (name, on_lapse) values ('again', 'retry');
create function reserves(args jsonb) returns idem.response language plpgsql as
$$begin perform idem.reserve('shop', 'k', '\x01'); return row(201, null, null)::idem.response; end$$;
create function completes(args jsonb) returns idem.response language plpgsql as $$
begin
    perform idem.complete('shop', 'k', token, 200) from idem.reserve('shop', 'k', '\x01');
    return row(201, null, null)::idem.response;
end
$$;
create function marks(args jsonb) returns idem.response language plpgsql as
$$begin perform idem.once('shop', 'k'); return row(201, null, null)::idem.response; end$$;
create function plain(args jsonb) returns idem.response language sql as 'select row(202, null, null)::idem.response';
create function nests(args jsonb) returns idem.response language plpgsql as
$$begin perform idem.run('shop', 'k', '\x01', 'plain(jsonb)', '{}'); return row(201, null, null)::idem.response; end$$;
create function another(args jsonb) returns idem.response language plpgsql as
$$begin perform idem.run('shop', 'l', '\x01', 'plain(jsonb)', '{}'); return row(201, null, null)::idem.response; end$$;

select is(
    pg_temp.refusal(format($$select idem.run('shop', 'k', '\x01', %L, '{}')$$, handler)), 'IK002 not_the_owner', handler
)
from unnest(array['reserves(jsonb)', 'completes(jsonb)', 'marks(jsonb)', 'nests(jsonb)']) as handler;
select is((idem.lookup('shop', 'k')).outcome, 'absent', 'all of it is undone');
select is((idem.run('shop', 'k', '\x01', 'another(jsonb)', '{}')).outcome, 'started', 'another key is no matter');
select is((idem.lookup('shop', 'l')).status, 202);

set local idem.single_transaction = on;
select idem.reserve('shop', 'lapsed', '\x01', 'leased', policy => 'again');
set local idem.clock_offset = '2 minutes';
create temp table met (outcome text);
create function looks(args jsonb) returns idem.response language plpgsql as $$
begin
    insert into met select outcome from idem.reserve('shop', 'lapsed', '\x01');
    return row(201, null, null)::idem.response;
end
$$;
select is(
    (idem.run('shop', 'lapsed', '\x01', 'looks(jsonb)', '{}')).outcome, 'started', 'a key that is taken over has its row'
);
select results_eq('table met', array['in_progress'], 'so its handler is told');

select * from finish();
rollback;
