-- Idempotency keys for work that is written in PL/pgSQL. Run this file with psql in your own schema.
--
--     select * from answer_once('client:42', :'key_header', 'POST', '/orders', :'body', 'application/json', 'place_order');
--
-- is the whole of a request, in autocommit mode: one transaction with the reservation, the work and its answer.
-- `work` is a function of the request's body, bytea, that returns idem.response. What it raises rolls everything back
-- and is raised on. Every other function of schema idem is called as it is:
--
--     \set token `cat /proc/sys/kernel/random/uuid`
--     select * from idem.reserve('client:42', 'key', mode => 'leased', token => :'token');
--
-- Errors have an SQLSTATE, which psql keeps in :LAST_ERROR_SQLSTATE. Ours are
--
--     IK001  scope or key not acceptable             IK005  an atomic reservation was not completed (at COMMIT)
--     IK002  another attempt owns the key            IK006  no such policy
--     IK003  nothing is reserved under this key      IK007  over a limit
--     IK004  does not fit the mode or transaction
create or replace function answer_once(
    scope text,
    key_header text,
    method text,
    path text,
    body bytea,
    content_type text,
    work regproc,
    policy text default null
) returns idem.response
language plpgsql as $$
declare
    attempt idem.http_reservation;
    answer idem.response;
begin
    -- an exception takes this block back, reservation and work together
    begin
        select * into attempt from idem.http_reserve(
            scope, key_header, method, path, body, content_type, token => gen_random_uuid(), policy => policy
        );
        if attempt.status is not null then
            return row(attempt.status, attempt.headers, attempt.body)::idem.response;
        end if;
        execute format('select * from %s($1)', work) into answer using body;
        if idem.http_complete(scope, attempt.key, attempt.token, answer.status, answer.headers, answer.body)
            in ('rollback', 'repeated') then
            raise exception using errcode = 'NOT00', message = 'the answer is not to be kept';
        end if;
    exception when sqlstate 'NOT00' then
        null;
    end;
    return answer;
end
$$;
