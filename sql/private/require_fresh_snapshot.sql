-- A snapshot older than the row does not show it, and no read could tell that from no row. An insert can: it meets the
-- row in the index and raises 40001. The insert itself never stays, since the caller raises next; it holds the lock of
-- the key, as every insert does.
create or replace function idem_private.require_fresh_snapshot(scope text, key text) returns void
language plpgsql volatile as $$
begin
    if current_setting('transaction_isolation') <> 'read committed'
        and pg_try_advisory_xact_lock(
            idem_private.lock_id(require_fresh_snapshot.scope, require_fresh_snapshot.key)
        ) then
        insert into idem_private.reservation (
            scope, key, policy, created_at, expires_at, owned_at, token, attempt, leased
        ) values (
            require_fresh_snapshot.scope, require_fresh_snapshot.key, 'default', now(), now(), now(),
            gen_random_uuid(), 1, true
        )
        on conflict do nothing;
    end if;
end
$$;

comment on function idem_private.require_fresh_snapshot(text, text) is
'Raises 40001 where a key that is not to be seen was committed after the snapshot. Only for callers that raise next.';

revoke all on function idem_private.require_fresh_snapshot(text, text) from public;
