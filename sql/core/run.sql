-- Runs as the caller and without a SET clause: the handler has the caller's rights and search_path. What needs more is
-- done by run_begin and run_end, and names here are qualified against that search_path.
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
    answer idem.reservation;
    response idem.response;
begin
    answer := idem.run_begin(run.scope, run.key, run.fingerprint, run.handler, run.policy);
    if answer.outcome operator(pg_catalog.=) 'started' then
        execute pg_catalog.format('select * from %s($1)', run.handler::pg_catalog.regproc)
        into response using run.args;
        answer := idem.run_end(
            run.scope, run.key, run.fingerprint, answer.token,
            response.status, response.headers, response.body, run.policy
        );
    end if;
    return answer;
end
$$;

comment on function idem.run(text, text, bytea, regprocedure, jsonb, text) is
'Reserves, calls handler(args) with the caller''s rights, and stores the idem.response it returns, whatever its status, in one call and one write. Outcome started: the handler ran now; status, headers and body are its own. A handler that raises rolls everything back and leaves the key free. Errors: IK001, IK002, IK006, 22023.';

revoke all on function idem.run(text, text, bytea, regprocedure, jsonb, text) from public;
