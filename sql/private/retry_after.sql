create or replace function idem_private.retry_after(policy_wait interval, lease_left interval) returns interval
language sql immutable as $$
    select make_interval(
        secs => greatest(
            1,
            ceil(extract(epoch from least(policy_wait, case when lease_left > interval '0' then lease_left end)))
        )::double precision
    )
$$;

comment on function idem_private.retry_after(interval, interval) is
'The least of the policy''s wait and the lease left, in whole seconds, at least one.';

revoke all on function idem_private.retry_after(interval, interval) from public;
