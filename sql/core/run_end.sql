-- The second half of idem.run. It stands alone: called without run_begin it is reserve and complete in one write, under
-- the same lock and constraint.
create or replace function idem.run_end(
    scope text,
    key text,
    fingerprint bytea,
    token uuid,
    response idem.response,
    policy text default 'default'
) returns idem.reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    settings record;
    answer idem.reservation;
begin
    if run_end.token is not null then
        if not idem.complete(
            run_end.scope, run_end.key, run_end.token,
            (run_end.response).status, (run_end.response).headers, (run_end.response).body
        ) then
            perform idem_private.refuse_owner_call(run_end.scope, run_end.key, run_end.token, false);
        end if;
        answer := idem.lookup(run_end.scope, run_end.key);
        answer.outcome := 'started';
        answer.token := run_end.token;
        return answer;
    end if;

    select
        p.name, p.ttl, p.min_retention, p.scopes_bound, idem_private.clock() as at,
        idem_private.headers_are_pairs((run_end.response).headers) is not false as pairs,
        idem_private.key_fits(
            run_end.scope, run_end.key, p.key_min_length, p.key_max_length, p.key_pattern
        ) as fits,
        pg_try_advisory_xact_lock(idem_private.lock_id(run_end.scope, run_end.key)) as locked
    into settings
    from idem_private.policy as p
    where p.name = coalesce(run_end.policy, 'default') collate "C";
    if (settings.fits and settings.pairs and not settings.scopes_bound) is not true then
        perform idem_private.check_scope(run_end.scope);
        perform idem_private.check_call(run_end.scope, run_end.key, run_end.policy);
        if not settings.pairs then
            perform idem_private.refuse_headers();
        end if;
    end if;

    if settings.locked then
        insert into idem_private.reservation (
            scope, key, fingerprint, policy, created_at, expires_at, attempt, leased, completed_at, status, headers, body
        ) values (
            run_end.scope, run_end.key, run_end.fingerprint, settings.name, settings.at, settings.at + settings.ttl,
            1, false, settings.at, (run_end.response).status, (run_end.response).headers, (run_end.response).body
        )
        on conflict do nothing;
        if found then
            return row(
                'started', null, 1, null, null, null,
                (run_end.response).status, (run_end.response).headers, (run_end.response).body,
                null, null, settings.at, null, settings.at,
                idem_private.real_expiry(settings.at + settings.ttl, settings.at, settings.min_retention)
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

comment on function idem.run_end(text, text, bytea, uuid, idem.response, text) is
'For idem.run alone: stores the response of its handler. Errors: IK001, IK002, IK006, 22023.';

revoke all on function idem.run_end(text, text, bytea, uuid, idem.response, text) from public;
