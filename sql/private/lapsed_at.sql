create or replace function idem_private.lapsed_at(row_ idem_private.reservation) returns timestamptz
language sql immutable as $$
    select case when row_.leased then row_.lease_until else greatest(row_.created_at, row_.owned_at) end
$$;

comment on function idem_private.lapsed_at(idem_private.reservation) is
'When a lapsed row lapsed: at the end of its lease. An atomic one never had any, and was left behind as it was taken.';

revoke all on function idem_private.lapsed_at(idem_private.reservation) from public;
