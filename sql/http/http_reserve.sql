-- idem.reserve decides; this reads the request before it and words the answer after it.
create or replace function idem.http_reserve(
    scope text,
    key_header text,
    method text,
    path text,
    body bytea default null,
    content_type text default null,
    mode text default 'atomic',
    lease interval default null,
    state jsonb default null,
    token uuid default null,
    policy text default 'default'
) returns idem.http_reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    settings idem_private.policy;
    key text;
    request record;
    held idem.reservation;
    answer idem.response;
    outcome text;
begin
    perform idem_private.check_scope(http_reserve.scope);
    perform idem_private.check_request(http_reserve.method, http_reserve.path);
    select p.* into settings
    from idem_private.policy as p
    where p.name = coalesce(http_reserve.policy, 'default') collate "C";
    if not found then
        perform idem_private.check_call(http_reserve.scope, null, http_reserve.policy);
    end if;

    if not upper(http_reserve.method collate "C") = any(settings.methods)
        or (http_reserve.key_header is null and not settings.required) then
        outcome := 'unprotected';
    elsif http_reserve.key_header is null then
        outcome := 'missing';
    else
        key := idem_private.key_of_header(http_reserve.key_header collate "C");
        if idem_private.key_fits(
            'any', key, settings.key_min_length, settings.key_max_length, settings.key_pattern
        ) is not true and not idem_private.header_fits(key, settings) then
            outcome := 'invalid';
        end if;
    end if;
    if outcome is not null then
        if outcome <> 'unprotected' then
            answer := idem_private.http_problem(outcome, settings, null, null);
        end if;
        return row(
            outcome, null, null, null, null, null, null, answer.status, answer.headers, answer.body
        )::idem.http_reservation;
    end if;

    select r.fingerprint, r.fields into request
    from idem_private.read_request(
        http_reserve.method collate "C",
        http_reserve.path,
        http_reserve.body,
        http_reserve.content_type,
        settings.ignore,
        settings.include
    ) as r;
    held := idem.reserve(
        http_reserve.scope, key, request.fingerprint, http_reserve.mode, http_reserve.lease, request.fields,
        http_reserve.state, http_reserve.token, http_reserve.policy
    );
    if held.outcome = 'replay' then
        -- What was stored by idem.complete or idem.once may have no status, which here would mean: do the work.
        answer.status := coalesce(held.status, case when held.body is null then 204 else 200 end);
        answer.headers := coalesce(held.headers, '[]')
            || jsonb_build_array(jsonb_build_array(idem_private.replay_header(settings), 'true'));
        answer.body := held.body;
    elsif held.outcome <> 'started' then
        answer := idem_private.http_problem(held.outcome, settings, held.mismatched, held.retry_after);
    end if;
    return row(
        held.outcome, key, held.token, held.attempt, held.downstream_key, held.recovery_point, held.state,
        answer.status, answer.headers, answer.body
    )::idem.http_reservation;
end
$$;

comment on function idem.http_reserve(
    text, text, text, text, bytea, text, text, interval, jsonb, uuid, text
) is
'idem.reserve for an HTTP request, from the value of its Idempotency-Key header on. Status null: do the work, then call http_complete; otherwise send status, headers and body. Outcome: those of reserve, and missing, invalid, unprotected. Errors: IK001 (scope only), IK004, IK006, 22023.';

revoke all on function idem.http_reserve(
    text, text, text, text, bytea, text, text, interval, jsonb, uuid, text
) from public;
