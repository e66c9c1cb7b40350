-- Look; if nothing is there, take a transaction-level try-lock on the key; look again and insert. An uncommitted insert
-- of the same key would make ON CONFLICT wait for the whole first request: every insert holds the lock, so whoever does
-- not get it knows that another attempt is at work, without waiting. With the lock held, the look and the insert can
-- be one statement: a row that its snapshot does not show cannot appear, for nobody else may insert it. The unique
-- constraint is still the arbiter. A replay takes no lock at all.
--
-- Under REPEATABLE READ a row committed after the snapshot makes the insert raise 40001.
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
    leased boolean;
    look record;
    at timestamptz;
    answer idem.reservation;
begin
    reserve.token := coalesce(reserve.token, gen_random_uuid());
    reserve.policy := coalesce(reserve.policy, 'default');
    leased := idem_private.check_mode(reserve.mode, reserve.lease);
    if leased then
        perform idem_private.begin_leased();
        reserve.lease := idem_private.check_interval('lease', reserve.lease);
    end if;
    if reserve.fields is not null then
        perform idem_private.check_fields(reserve.fields);
    end if;

    for round in 1..max_rounds loop
        select
            p.ttl, p.lease, p.retry_after, p.key_min_length, p.key_max_length, p.key_pattern,
            s.inner_key, s.outer_key, r.token is not null as taken
        into look
        from idem_private.policy as p
        cross join idem_private.secret as s
        left join idem_private.reservation as r
            on r.scope = reserve.scope collate "C" and r.key = reserve.key collate "C"
        where p.name = reserve.policy collate "C";
        if not found then
            perform idem_private.refuse_policy(reserve.policy);
        end if;
        if round = 1 then
            perform idem_private.check_key(
                reserve.scope, reserve.key, look.key_min_length, look.key_max_length, look.key_pattern
            );
        end if;

        if look.taken then
            answer := idem_private.reserve_existing(
                reserve.scope, reserve.key, reserve.fingerprint, reserve.fields, reserve.policy, look.ttl,
                leased, reserve.lease, reserve.state, reserve.token
            );
            if answer.outcome is not null then
                return answer;
            end if;
            continue;
        end if;

        if not pg_try_advisory_xact_lock(idem_private.lock_id(reserve.scope, reserve.key)) then
            answer.outcome := 'in_progress';
            answer.retry_after := idem_private.retry_after(look.retry_after, null);
            return answer;
        end if;
        if leased then
            reserve.lease := coalesce(reserve.lease, look.lease);
        else
            perform idem_private.defer_check();
        end if;
        at := idem_private.clock();
        insert into idem_private.reservation as r (
            scope, key, fingerprint, fields, policy, created_at, expires_at,
            owned_at, owner_xid, token, attempt, leased, lease, lease_until, state
        )
        select
            reserve.scope, reserve.key, reserve.fingerprint, reserve.fields, reserve.policy, at, at + look.ttl,
            clock_timestamp(), pg_current_xact_id(), reserve.token, 1, leased, reserve.lease, at + reserve.lease,
            reserve.state
        where not exists (
            select from idem_private.reservation as r
            where r.scope = reserve.scope collate "C" and r.key = reserve.key collate "C"
        )
        on conflict do nothing;
        if found then
            if leased then
                perform idem_private.note_leased(reserve.scope, reserve.key, false);
            end if;
            answer.outcome := 'started';
            answer.token := reserve.token;
            answer.attempt := 1;
            answer.downstream_key := idem_private.derive_key(
                look.inner_key, look.outer_key, reserve.scope, reserve.key, ''
            );
            answer.state := reserve.state;
            answer.created_at := at;
            answer.lease_until := at + reserve.lease;
            answer.expires_at := at + look.ttl;
            return answer;
        end if;
    end loop;

    -- A row came and went at every look. Whoever made it is at work.
    answer.outcome := 'in_progress';
    answer.retry_after := idem_private.retry_after(look.retry_after, null);
    return answer;
end
$$;

comment on function idem.reserve(text, text, bytea, text, interval, jsonb, jsonb, uuid, text) is
'Claims (scope, key) before any work is done. Outcome: started, replay, in_progress, unresolved, mismatch or expired. Mode atomic: the work and idem.complete are in the same transaction; leased: commit, then do the work. Errors: IK001, IK004, IK006, IK007, 22023.';

revoke all on function idem.reserve(text, text, bytea, text, interval, jsonb, jsonb, uuid, text) from public;
