-- A new owner, the same life: fingerprint, fields, policy and what the last owner left of its state stay.
create or replace function idem_private.take_over(
    held idem_private.reservation, leased boolean, lease interval, state jsonb, token uuid
) returns idem_private.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    taken idem_private.reservation;
begin
    update idem_private.reservation as r
    set
        owned_at = clock_timestamp(),
        owner_xid = pg_current_xact_id(),
        token = take_over.token,
        attempt = r.attempt + 1,
        leased = take_over.leased,
        put_off = false,
        lease = take_over.lease,
        lease_until = idem_private.clock() + take_over.lease,
        state = coalesce(r.state, take_over.state),
        released_at = null
    where r.scope = held.scope and r.key = held.key
    returning r.* into taken;
    return taken;
end
$$;

comment on function idem_private.take_over(idem_private.reservation, boolean, interval, jsonb, uuid) is
'The next attempt at a lapsed or released row that the caller holds locked.';

revoke all on function idem_private.take_over(
    idem_private.reservation, boolean, interval, jsonb, uuid
) from public;
