-- The second half of idem.run. It stands alone: called without run_begin it is reserve and complete in one write, under
-- the same lock and constraint.
create or replace function idem.run_end(
    scope text,
    key text,
    fingerprint bytea,
    token uuid,
    status int,
    headers jsonb,
    body bytea,
    policy text default 'default'
) returns idem.reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    at constant timestamptz := idem_private.clock();
    settings record;
    answer idem.reservation;
begin
    if exists (select from idem_private.scope_binding) then
        perform idem_private.check_scope(run_end.scope);
    end if;
    if run_end.token is not null then
        if not idem.complete(
            run_end.scope, run_end.key, run_end.token, run_end.status, run_end.headers, run_end.body
        ) then
            perform idem_private.refuse_owner_call(run_end.scope, run_end.key, run_end.token, false);
        end if;
        answer := idem.lookup(run_end.scope, run_end.key);
        answer.outcome := 'started';
        answer.token := run_end.token;
        return answer;
    end if;

    if not idem_private.headers_are_pairs(run_end.headers) then
        perform idem_private.refuse_headers();
    end if;
    select p.name, p.ttl, p.min_retention, p.key_min_length, p.key_max_length, p.key_pattern into settings
    from idem_private.policy as p
    where p.name = coalesce(run_end.policy, 'default') collate "C";
    if idem_private.key_fits(
        run_end.scope, run_end.key, settings.key_min_length, settings.key_max_length, settings.key_pattern
    ) is not true then
        perform idem_private.check_call(run_end.scope, run_end.key, run_end.policy);
    end if;

    if pg_try_advisory_xact_lock(idem_private.lock_id(run_end.scope, run_end.key)) then
        run_end.token := gen_random_uuid();
        insert into idem_private.reservation (
            scope, key, fingerprint, policy, created_at, expires_at, owned_at, owner_xid, token, attempt, leased,
            completed_at, status, headers, body
        ) values (
            run_end.scope, run_end.key, run_end.fingerprint, settings.name, at, at + settings.ttl, clock_timestamp(),
            pg_current_xact_id(), run_end.token, 1, false, at, run_end.status, run_end.headers, run_end.body
        )
        on conflict do nothing;
        if found then
            return row(
                'started', run_end.token, 1, null, null, null, run_end.status, run_end.headers, run_end.body,
                null, null, at, null, at, idem_private.real_expiry(at + settings.ttl, at, settings.min_retention)
            )::idem.reservation;
        end if;
    end if;
    raise exception using
        errcode = 'IK002',
        message = 'the key was reserved by another attempt meanwhile',
        detail = jsonb_build_object('code', 'not_the_owner')::text,
        hint = 'The handler of idem.run must not reserve its own key. Roll back, and run again to learn the outcome.';
end
$$;

comment on function idem.run_end(text, text, bytea, uuid, int, jsonb, bytea, text) is
'For idem.run alone: stores the response of its handler. Errors: IK001, IK002, IK006, 22023.';

revoke all on function idem.run_end(text, text, bytea, uuid, int, jsonb, bytea, text) from public;
