-- An unfinished atomic row that another transaction left behind (it could not be checked at commit, or it was
-- restored) has no lease: its outcome is as unknown as that of a lapsed one.
create or replace function idem_private.phase(
    row_ idem_private.reservation, min_retention interval, tombstone interval, at timestamptz
) returns text
language sql stable as $$
    select
        case
            when row_.completed_at is not null then
                idem_private.finished_phase(
                    row_.expires_at, row_.completed_at, row_.expired_at, min_retention, tombstone, at
                )
            when row_.released_at is not null then 'released'
            when row_.leased and row_.lease_until > at then 'in_progress'
            when not row_.leased and idem_private.owned_here(row_.owner_xid, row_.owned_at) then 'in_progress'
            else 'lapsed'
        end
$$;

comment on function idem_private.phase(idem_private.reservation, interval, interval, timestamptz) is
'The state of a stored row at a time: absent, in_progress, lapsed, released, completed or expired.';

revoke all on function idem_private.phase(idem_private.reservation, interval, interval, timestamptz) from public;
