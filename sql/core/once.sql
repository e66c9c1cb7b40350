-- A mark is a finished row without an owner: it has no token. Nearly every message
-- is a new one, so the lock is tried first and one look under it is enough; without the lock it still finds duplicates.
create or replace function idem.once(scope text, key text, policy text default 'messages') returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    settings record;
    look record;
begin
    select
        p.name, p.ttl, p.min_retention, p.scopes_bound, idem_private.clock() as at,
        idem_private.key_fits(once.scope, once.key, p.key_min_length, p.key_max_length, p.key_pattern) as fits,
        pg_try_advisory_xact_lock(idem_private.lock_id(once.scope, once.key)) as locked
    into settings
    from idem_private.policy as p
    where p.name = coalesce(once.policy, 'messages') collate "C";
    select r.policy, r.expires_at, r.completed_at into look
    from idem_private.reservation as r
    where r.scope = once.scope collate "C" and r.key = once.key collate "C";

    -- Anything but a new key.
    if found or (settings.fits and settings.locked and not settings.scopes_bound) is not true
        or current_setting('transaction_isolation') <> 'read committed' then
        if settings.fits is not true or settings.scopes_bound then
            perform idem_private.check_scope(once.scope);
            perform idem_private.check_call(once.scope, once.key, coalesce(once.policy, 'messages'));
        end if;
        if look.completed_at is not null and look.policy = settings.name
            and settings.at < idem_private.real_expiry(look.expires_at, look.completed_at, settings.min_retention) then
            -- The quick yes for a redelivery.
            return 'duplicate';
        elsif look.policy is not null then
            return idem_private.mark_existing(once.scope, once.key, settings.name, settings.ttl);
        elsif not settings.locked then
            return 'in_progress';
        end if;
        perform idem_private.require_fresh_snapshot(once.scope, once.key);
    end if;
    insert into idem_private.reservation (
        scope, key, policy, created_at, expires_at, owned_at, owner_xid, attempt, leased, completed_at
    ) values (
        once.scope, once.key, settings.name, settings.at, settings.at + settings.ttl, clock_timestamp(),
        pg_current_xact_id(), 1, false, settings.at
    )
    on conflict do nothing;
    return case when found then 'first' else 'in_progress' end;
end
$$;

comment on function idem.once(text, text, text) is
'Marks a message as handled, in the caller''s transaction: first (do the work, then commit), duplicate (acknowledge it), or in_progress (another transaction is at it, or its outcome is unknown: do not acknowledge). Scope is the consumer. Errors: IK001, IK006.';

revoke all on function idem.once(text, text, text) from public;
