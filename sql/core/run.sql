-- Runs as the caller and without a SET clause: the handler has the caller's rights and search_path. What needs more is
-- done by run_begin, reserve and run_end, and names here are qualified against that search_path.
create or replace function idem.run(
    scope text,
    key text,
    fingerprint bytea,
    handler regprocedure,
    args jsonb,
    policy text default 'default'
) returns idem.reservation
language plpgsql volatile as $$
declare
    signature constant pg_catalog.text := run.handler::pg_catalog.text;
    locked constant boolean := idem.run_begin(run.scope, run.key);
    answer idem.reservation;
    -- an array of one, since a composite value by itself is spread over the fields of the target
    responses idem.response[];
begin
    -- The type is written out in full where another of its name is found first, and quoted where the session has
    -- quote_all_identifiers on.
    if pg_catalog.right(signature, 7) operator(pg_catalog.=) '(jsonb)'
        or pg_catalog.right(signature, 9) operator(pg_catalog.=) '("jsonb")'
        or pg_catalog.right(signature, 18) operator(pg_catalog.=) '(pg_catalog.jsonb)'
        or pg_catalog.right(signature, 22) operator(pg_catalog.=) '("pg_catalog"."jsonb")' then
        if not locked then
            answer := idem.reserve(run.scope, run.key, run.fingerprint, policy => run.policy);
            if answer.outcome operator(pg_catalog.<>) 'started' then
                return answer;
            end if;
        end if;
        if run.args is null then
            perform
            from pg_catalog.pg_proc as p
            where p.oid operator(pg_catalog.=) run.handler::pg_catalog.oid and p.proisstrict;
            if found then
                raise exception using
                    errcode = '22023',
                    message = 'args is null and the handler STRICT: it would not be called, and yet count as done',
                    detail = pg_catalog.jsonb_build_object('code', 'args_missing', 'argument', 'args')::pg_catalog.text,
                    hint = 'Pass args, or declare the handler CALLED ON NULL INPUT.';
            end if;
        end if;
        execute
            'select array[' operator(pg_catalog.||) pg_catalog.left(
                signature,
                case
                    when pg_catalog.right(signature, 7) operator(pg_catalog.=) '(jsonb)' then -7
                    when pg_catalog.right(signature, 9) operator(pg_catalog.=) '("jsonb")' then -9
                    when pg_catalog.right(signature, 18) operator(pg_catalog.=) '(pg_catalog.jsonb)' then -18
                    else -22
                end
            ) operator(pg_catalog.||) '($1)::idem.response]'
        into strict responses using run.args;
        return idem.run_end(run.scope, run.key, run.fingerprint, answer.token, responses[1], run.policy);
    end if;
    raise exception using
        errcode = '22023',
        message = 'the handler must be a function of one jsonb that returns idem.response',
        detail = pg_catalog.jsonb_build_object(
            'code', 'handler_unfit', 'argument', 'handler'
        )::pg_catalog.text,
        hint = 'Create it as function pay(args jsonb) returns idem.response, and pass ''pay(jsonb)''.';
end
$$;

comment on function idem.run(text, text, bytea, regprocedure, jsonb, text) is
'Reserves, calls handler(args) with the caller''s rights, and stores the idem.response it returns, whatever its status, in one call and one write. Outcome started: the handler ran now; status, headers and body are its own. A handler that raises rolls everything back and leaves the key free. Errors: IK001, IK002, IK006, 22023, 42846.';

revoke all on function idem.run(text, text, bytea, regprocedure, jsonb, text) from public;
