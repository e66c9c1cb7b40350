-- Look; if nothing is there, take a transaction-level try-lock on the key; look again; insert. An uncommitted insert of
-- the same key would make ON CONFLICT wait for the whole first request: every insert holds the lock, so whoever does
-- not get it knows that another attempt is at work, without waiting, and with the lock held a row that the second look
-- does not show cannot appear. The unique constraint is still the arbiter. A replay takes no lock at all.
--
-- Under REPEATABLE READ a row committed after the snapshot makes an insert raise 40001.
--
-- PL/pgSQL prepares each expression anew in every transaction, and each statement its whole plan, even the parts that
-- are not reached: so there are few of them, and what is rare is elsewhere.
create or replace function idem.reserve(
    scope text,
    key text,
    fingerprint bytea default null,
    mode text default 'atomic',
    lease interval default null,
    fields jsonb default null,
    state jsonb default null,
    token uuid default null,
    policy text default 'default'
) returns idem.reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    leased boolean;
    max_rounds constant int := 10;
    look record;
    bound boolean;
    settings record;
    downstream_key uuid;
    answer idem.reservation;
begin
    if reserve.mode is distinct from 'atomic' or reserve.lease is not null or reserve.fields is not null then
        perform idem_private.check_mode(reserve.mode, reserve.lease);
        reserve.lease := idem_private.check_interval('lease', reserve.lease);
        perform idem_private.check_fields(reserve.fields);
        leased := reserve.mode = 'leased';
        if leased then
            perform idem_private.begin_leased();
        end if;
    end if;

    for round in 1..max_rounds loop
        select
            r.policy, r.fingerprint, r.attempt, r.created_at, r.expires_at, r.completed_at, r.status, r.headers, r.body
        into look
        from idem_private.reservation as r
        where r.scope = reserve.scope collate "C" and r.key = reserve.key collate "C";
        -- The quick yes for a replay; idem_private.judge knows every rule.
        if look.completed_at is not null and look.policy = coalesce(reserve.policy, 'default') collate "C"
            and look.fingerprint is not distinct from reserve.fingerprint then
            select idem_private.real_expiry(look.expires_at, look.completed_at, p.min_retention), p.scopes_bound
            into look.expires_at, bound
            from idem_private.policy as p
            where p.name = look.policy;
            if bound is false and idem_private.clock() < look.expires_at then
                return row(
                    'replay', null, look.attempt, null, null, null, look.status, look.headers, look.body, null, null,
                    look.created_at, null, look.completed_at, look.expires_at
                )::idem.reservation;
            end if;
        end if;

        select
            p.name, p.ttl, p.lease, p.retry_after, p.scopes_bound, idem_private.clock() as at,
            idem_private.key_fits(
                reserve.scope, reserve.key, p.key_min_length, p.key_max_length, p.key_pattern
            ) as fits,
            case
                when look.created_at is null
                    then pg_try_advisory_xact_lock(idem_private.lock_id(reserve.scope, reserve.key))
            end as locked
        into settings
        from idem_private.policy as p
        where p.name = coalesce(reserve.policy, 'default') collate "C";
        if settings.fits is not true or settings.scopes_bound then
            perform idem_private.check_scope(reserve.scope);
            perform idem_private.check_call(reserve.scope, reserve.key, reserve.policy);
        end if;
        if look.created_at is not null then
            answer := idem_private.reserve_existing(
                reserve.scope, reserve.key, reserve.fingerprint, reserve.fields, settings.name, settings.ttl,
                leased is true, reserve.lease, settings.lease, reserve.state, coalesce(reserve.token, gen_random_uuid())
            );
            if answer.outcome is not null then
                return answer;
            end if;
            continue;
        elsif not settings.locked then
            return idem_private.busy(settings.retry_after);
        end if;
        perform from idem_private.reservation as r
        where r.scope = reserve.scope collate "C" and r.key = reserve.key collate "C";
        continue when found;

        if current_setting('transaction_isolation') <> 'read committed' then
            perform idem_private.require_fresh_snapshot(reserve.scope, reserve.key);
        end if;
        if leased then
            reserve.lease := coalesce(reserve.lease, settings.lease);
        end if;
        select
            coalesce(reserve.token, gen_random_uuid()),
            idem_private.derive_key(s.value, reserve.scope, reserve.key, '')
        into strict reserve.token, downstream_key
        from idem_private.secret as s;
        insert into idem_private.reservation (
            scope, key, fingerprint, fields, policy, created_at, expires_at, owned_at, owner_xid, token, attempt,
            leased, must_complete, lease, lease_until, state
        ) values (
            reserve.scope, reserve.key, reserve.fingerprint, reserve.fields, settings.name, settings.at,
            settings.at + settings.ttl, clock_timestamp(), pg_current_xact_id(), reserve.token, 1,
            leased is true, leased is not true, reserve.lease, settings.at + reserve.lease, reserve.state
        )
        on conflict do nothing;
        if found then
            if leased then
                perform idem_private.note_leased(reserve.scope, reserve.key, false);
            end if;
            return row(
                'started', reserve.token, 1, downstream_key, null, reserve.state, null, null, null, null, null,
                settings.at, settings.at + reserve.lease, null, settings.at + settings.ttl
            )::idem.reservation;
        end if;
    end loop;

    -- A row came and went at every look. Whoever made it is at work.
    return idem_private.busy(settings.retry_after);
end
$$;

comment on function idem.reserve(text, text, bytea, text, interval, jsonb, jsonb, uuid, text) is
'Claims (scope, key) before any work is done. Outcome: started, replay, in_progress, unresolved, mismatch or expired. Mode atomic: the work and idem.complete are in the same transaction; leased: commit, then do the work. Errors: IK001, IK004, IK006, IK007, 22023.';

revoke all on function idem.reserve(text, text, bytea, text, interval, jsonb, jsonb, uuid, text) from public;
