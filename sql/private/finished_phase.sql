create or replace function idem_private.finished_phase(
    expires_at timestamptz,
    completed_at timestamptz,
    expired_at timestamptz,
    min_retention interval,
    tombstone interval,
    at timestamptz
) returns text
language sql stable as $$
    select
        case
            when at < idem_private.real_expiry(expires_at, completed_at, min_retention) then 'completed'
            when at < coalesce(expired_at, idem_private.real_expiry(expires_at, completed_at, min_retention)) + tombstone
                then 'expired'
            else 'absent'
        end
$$;

comment on function idem_private.finished_phase(
    timestamptz, timestamptz, timestamptz, interval, interval, timestamptz
) is 'The state of a finished row at a time: completed, expired or absent.';

revoke all on function idem_private.finished_phase(
    timestamptz, timestamptz, timestamptz, interval, interval, timestamptz
) from public;
