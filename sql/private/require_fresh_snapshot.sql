-- A snapshot older than the row does not show it, and no read could tell that from no row. An insert can: it meets the
-- row in the index and raises 40001. Where another transaction is changing that row the insert would wait for it, only
-- to raise the same: so it is tried with no patience, and taken back. It holds the lock of the key, as every insert
-- does.
create or replace function idem_private.require_fresh_snapshot(scope text, key text) returns void
language plpgsql volatile as $$
begin
    if current_setting('transaction_isolation') = 'read committed'
        or not pg_try_advisory_xact_lock(
            idem_private.lock_id(require_fresh_snapshot.scope, require_fresh_snapshot.key)
        ) then
        return;
    end if;
    begin
        perform set_config('lock_timeout', '1ms', true);
        insert into idem_private.reservation (
            scope, key, policy, created_at, expires_at, owned_at, token, attempt, leased
        ) values (
            require_fresh_snapshot.scope, require_fresh_snapshot.key, 'default', now(), now(), now(),
            gen_random_uuid(), 1, true
        )
        on conflict do nothing;
        -- There is no such row: take the insert back.
        raise sqlstate 'IK000';
    exception
        when sqlstate 'IK000' then
            return;
        when lock_not_available then
            raise exception using
                errcode = '40001',
                message = 'another transaction is changing a key that was committed after the snapshot',
                detail = jsonb_build_object('code', 'old_snapshot')::text,
                hint = 'Run the transaction again.';
    end;
end
$$;

comment on function idem_private.require_fresh_snapshot(text, text) is
'Raises 40001 where a key that is not to be seen was committed after the snapshot. Waits for nobody.';

revoke all on function idem_private.require_fresh_snapshot(text, text) from public;
