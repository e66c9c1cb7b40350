create or replace function idem_private.renew_lease(
    held idem_private.reservation, lease interval
) returns idem_private.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    at constant timestamptz := idem_private.clock();
    renewed idem_private.reservation;
begin
    update idem_private.reservation as r
    set lease_until = at + coalesce(renew_lease.lease, r.lease)
    where r.scope = held.scope and r.key = held.key
    returning r.* into renewed;
    return renewed;
end
$$;

comment on function idem_private.renew_lease(idem_private.reservation, interval) is
'Moves the end of the lease of a row that the caller holds locked; null is the length it was reserved with.';

revoke all on function idem_private.renew_lease(idem_private.reservation, interval) from public;
