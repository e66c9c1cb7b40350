create or replace function idem_private.busy(policy_wait interval) returns idem.reservation
language sql immutable as $$
    select row(
        'in_progress', null, null, null, null, null, null, null, null, null,
        idem_private.retry_after(policy_wait, null), null, null, null, null
    )::idem.reservation
$$;

comment on function idem_private.busy(interval) is
'The answer where another attempt is at work on a row that cannot be read yet.';

revoke all on function idem_private.busy(interval) from public;
