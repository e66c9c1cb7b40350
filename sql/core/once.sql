-- A mark is a finished row without an owner: its token is the nil UUID, which no attempt may use. Nearly every message
-- is a new one, so the lock is tried first and one look under it is enough; without the lock it still finds duplicates.
create or replace function idem.once(scope text, key text, policy text default 'messages') returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    at constant timestamptz := idem_private.clock();
    settings record;
    look record;
    locked boolean;
begin
    if exists (select from idem_private.scope_binding) then
        perform idem_private.check_scope(once.scope);
    end if;
    select
        p.name, p.ttl, p.min_retention, p.key_min_length, p.key_max_length, p.key_pattern
    into settings
    from idem_private.policy as p
    where p.name = coalesce(once.policy, 'messages') collate "C";
    if idem_private.key_fits(
        once.scope, once.key, settings.key_min_length, settings.key_max_length, settings.key_pattern
    ) is not true then
        perform idem_private.check_call(once.scope, once.key, coalesce(once.policy, 'messages'));
    end if;

    locked := pg_try_advisory_xact_lock(idem_private.lock_id(once.scope, once.key));
    select r.policy, r.expires_at, r.completed_at into look
    from idem_private.reservation as r
    where r.scope = once.scope collate "C" and r.key = once.key collate "C";
    if found then
        -- The quick yes for a redelivery.
        if look.completed_at is not null and look.policy = settings.name
            and at < idem_private.real_expiry(look.expires_at, look.completed_at, settings.min_retention) then
            return 'duplicate';
        end if;
        return idem_private.mark_existing(once.scope, once.key, settings.name, settings.ttl);
    elsif not locked then
        return 'in_progress';
    end if;

    if current_setting('transaction_isolation') <> 'read committed' then
        perform idem_private.require_fresh_snapshot(once.scope, once.key);
    end if;
    insert into idem_private.reservation (
        scope, key, policy, created_at, expires_at, owned_at, owner_xid, token, attempt, leased, completed_at
    ) values (
        once.scope, once.key, settings.name, at, at + settings.ttl, clock_timestamp(), pg_current_xact_id(),
        '00000000-0000-0000-0000-000000000000', 1, false, at
    )
    on conflict do nothing;
    return case when found then 'first' else 'in_progress' end;
end
$$;

comment on function idem.once(text, text, text) is
'Marks a message as handled, in the caller''s transaction: first (do the work, then commit), duplicate (acknowledge it), or in_progress (another transaction is at it, or its outcome is unknown: do not acknowledge). Scope is the consumer. Errors: IK001, IK006.';

revoke all on function idem.once(text, text, text) from public;
