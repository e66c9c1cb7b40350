-- The same attempt in other hands. There is no owner_xid, so that the transaction which claims may also complete.
create or replace function idem_private.claim(
    held idem_private.reservation, lease interval, at timestamptz
) returns idem.lapsed_reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    taken_at constant timestamptz := clock_timestamp();
    new_token constant uuid := gen_random_uuid();
    taken idem_private.reservation;
    noted idem_private.unfinished;
    secret bytea;
begin
    select s.value into strict secret from idem_private.secret as s;
    perform idem_private.record_lapse(held);
    update idem_private.reservation as r
    set
        owned_at = taken_at,
        owner_xid = null,
        token = new_token,
        leased = true,
        must_complete = false,
        put_off = false,
        lease = claim.lease,
        lease_until = claim.at + claim.lease
    where r.scope = held.scope and r.key = held.key
    returning r.* into taken;
    insert into idem_private.unfinished as u (scope, key, claims)
    values (held.scope, held.key, 1)
    on conflict (scope, key) do update set claims = u.claims + 1, claim_after = null
    returning u.* into noted;
    -- After the list, so that idem_private.begin_leased does not take that write for a reservation's.
    perform idem_private.record_event(
        taken, 'claimed', claim.at, null,
        jsonb_build_object('claims', noted.claims, 'lease_until', taken.lease_until)
    );
    perform idem_private.commit_durably();
    return row(
        taken.scope, taken.key, taken.token, taken.attempt,
        idem_private.derive_key(secret, taken.scope, taken.key, ''),
        taken.recovery_point, taken.state, taken.policy, taken.created_at, idem_private.lapsed_at(held),
        noted.claims, noted.reason
    )::idem.lapsed_reservation;
end
$$;

comment on function idem_private.claim(idem_private.reservation, interval, timestamptz) is
'Gives the row of a lapsed key, which the caller holds locked, to a resolver.';

revoke all on function idem_private.claim(idem_private.reservation, interval, timestamptz) from public;
