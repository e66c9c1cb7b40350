-- A new owner, the same life: fingerprint, fields, policy and what the last owner left of its state stay.
create or replace function idem_private.take_over(
    held idem_private.reservation, leased boolean, lease interval, state jsonb, token uuid
) returns idem_private.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    at constant timestamptz := idem_private.clock();
    taken_at constant timestamptz := clock_timestamp();
    taken_by constant xid8 := pg_current_xact_id();
    taken idem_private.reservation;
begin
    update idem_private.reservation as r
    set
        owned_at = taken_at,
        owner_xid = taken_by,
        token = take_over.token,
        attempt = r.attempt + 1,
        leased = take_over.leased,
        must_complete = not take_over.leased,
        put_off = false,
        lease = take_over.lease,
        lease_until = at + take_over.lease,
        state = coalesce(r.state, take_over.state),
        released_at = null
    where r.scope = held.scope and r.key = held.key
    returning r.* into taken;

    if held.released_at is null then
        perform idem_private.record_lapse(held);
    end if;
    perform idem_private.record_event(
        taken, case when held.released_at is null then 'taken_over' else 'reserved' end, at, null,
        jsonb_build_object('mode', case when taken.leased then 'leased' else 'atomic' end)
    );
    return taken;
end
$$;

comment on function idem_private.take_over(idem_private.reservation, boolean, interval, jsonb, uuid) is
'The next attempt at a lapsed or released row that the caller holds locked.';

revoke all on function idem_private.take_over(
    idem_private.reservation, boolean, interval, jsonb, uuid
) from public;
