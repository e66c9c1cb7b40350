-- Look; if nothing is there, take a transaction-level try-lock on the key; look again and insert. An uncommitted insert
-- of the same key would make ON CONFLICT wait for the whole first request: every insert holds the lock, so whoever does
-- not get it knows that another attempt is at work, without waiting. The second look and the insert are one statement
-- with one snapshot, taken under the lock: a row that it does not show cannot appear, for nobody else may insert it.
-- The unique constraint is still the arbiter. A replay takes no lock at all.
--
-- Under REPEATABLE READ a row committed after the snapshot makes the insert raise 40001.
--
-- Each expression that PL/pgSQL evaluates costs a microsecond in every transaction, hence few and large statements.
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
    max_rounds constant int := 10;
    leased constant boolean := coalesce(reserve.mode, 'atomic') = 'leased';
    look record;
    answer idem.reservation;
begin
    if leased or reserve.mode is distinct from 'atomic' or reserve.lease is not null or reserve.fields is not null then
        perform idem_private.check_mode(reserve.mode, reserve.lease);
        reserve.lease := idem_private.check_interval('lease', reserve.lease);
        perform idem_private.check_fields(reserve.fields);
        if leased then
            perform idem_private.begin_leased();
        end if;
    end if;

    for round in 1..max_rounds loop
        select
            p.ttl,
            p.lease,
            p.retry_after,
            p.min_retention,
            p.key_min_length,
            p.key_max_length,
            p.key_pattern,
            idem_private.key_fits(
                reserve.scope, reserve.key, p.key_min_length, p.key_max_length, p.key_pattern
            ) as fits,
            s.inner_key,
            s.outer_key,
            c.at,
            r as existing,
            case
                when r.policy = p.name then idem_private.judge(r, p, reserve.fingerprint, reserve.token, c.at)
            end as verdict,
            case
                when r.token is null
                    then pg_try_advisory_xact_lock(idem_private.lock_id(reserve.scope, reserve.key))
            end as locked
        into look
        from idem_private.policy as p
        cross join idem_private.secret as s
        cross join (select idem_private.clock() as at) as c
        left join idem_private.reservation as r
            on r.scope = reserve.scope collate "C" and r.key = reserve.key collate "C"
        where p.name = coalesce(reserve.policy, 'default') collate "C";

        if look.fits is not true then
            if look.ttl is null then
                perform idem_private.refuse_policy(reserve.policy);
            end if;
            perform idem_private.check_key(
                reserve.scope, reserve.key, look.key_min_length, look.key_max_length, look.key_pattern
            );
        end if;

        if look.verdict = 'replay' then
            return idem_private.answer(
                'replay', look.existing, look.min_retention, look.retry_after, reserve.fields, look.at
            );
        elsif look.locked is null then
            answer := idem_private.reserve_existing(
                reserve.scope, reserve.key, reserve.fingerprint, reserve.fields, coalesce(reserve.policy, 'default'),
                look.ttl, leased, reserve.lease, look.lease, reserve.state,
                coalesce(reserve.token, gen_random_uuid())
            );
            if answer.outcome is not null then
                return answer;
            end if;
        elsif not look.locked then
            return idem_private.busy(look.retry_after);
        else
            if not leased then
                perform idem_private.defer_check();
            end if;
            insert into idem_private.reservation as r (
                scope, key, fingerprint, fields, policy, created_at, expires_at, owned_at, owner_xid, token, attempt,
                leased, lease, lease_until, state
            )
            select
                reserve.scope, reserve.key, reserve.fingerprint, reserve.fields, coalesce(reserve.policy, 'default'),
                look.at, look.at + look.ttl, clock_timestamp(), pg_current_xact_id(),
                coalesce(reserve.token, gen_random_uuid()), 1, leased, l.lease, look.at + l.lease, reserve.state
            from (select case when leased then coalesce(reserve.lease, look.lease) end as lease) as l
            where not exists (
                select from idem_private.reservation as r
                where r.scope = reserve.scope collate "C" and r.key = reserve.key collate "C"
            )
            on conflict do nothing
            returning
                'started', r.token, 1,
                idem_private.derive_key(look.inner_key, look.outer_key, r.scope, r.key, ''),
                null, r.state, null, null, null, null, null, r.created_at, r.lease_until, null, r.expires_at
            into answer;
            if found then
                if leased then
                    perform idem_private.note_leased(reserve.scope, reserve.key, false);
                end if;
                return answer;
            end if;
        end if;
    end loop;

    -- A row came and went at every look. Whoever made it is at work.
    return idem_private.busy(look.retry_after);
end
$$;

comment on function idem.reserve(text, text, bytea, text, interval, jsonb, jsonb, uuid, text) is
'Claims (scope, key) before any work is done. Outcome: started, replay, in_progress, unresolved, mismatch or expired. Mode atomic: the work and idem.complete are in the same transaction; leased: commit, then do the work. Errors: IK001, IK004, IK006, IK007, 22023.';

revoke all on function idem.reserve(text, text, bytea, text, interval, jsonb, jsonb, uuid, text) from public;
