-- A tombstone has no answer left, and expires_at -infinity: no clock that goes back and no min_retention that grows
-- makes it a completed key again.
create or replace function idem_private.real_expiry(
    expires_at timestamptz, completed_at timestamptz, min_retention interval
) returns timestamptz
language sql stable as $$
    select case when expires_at > '-infinity' then greatest(expires_at, completed_at + min_retention) else expires_at end
$$;

comment on function idem_private.real_expiry(timestamptz, timestamptz, interval) is
'When a finished key expires: completion leaves it at least min_retention.';

revoke all on function idem_private.real_expiry(timestamptz, timestamptz, interval) from public;
