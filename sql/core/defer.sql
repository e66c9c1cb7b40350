create or replace function idem.defer(
    scope text, key text, token uuid, retry_in interval default null, reason text default null
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
    at timestamptz;
    claim_after timestamptz;
begin
    perform idem_private.check_scope(defer.scope);
    defer.retry_in := idem_private.check_interval('retry_in', defer.retry_in);
    held := idem_private.hold(defer.scope, defer.key, defer.token);
    at := idem_private.clock();
    if held.lease_until < at then
        perform idem_private.record_lapse(held);
    end if;
    -- Only ever earlier: a lease that is over stays over since then.
    update idem_private.reservation as r
    set lease_until = least(r.lease_until, at)
    where r.scope = held.scope and r.key = held.key;
    update idem_private.unfinished as u
    set claim_after = at + coalesce(defer.retry_in, idem_private.back_off(u.claims)), reason = defer.reason
    where u.scope = held.scope and u.key = held.key
    returning u.claim_after into claim_after;
    -- After the list, so that idem_private.begin_leased does not take that write for a reservation's.
    perform idem_private.record_event(
        held, 'deferred', at, defer.reason, jsonb_build_object('claim_after', claim_after)
    );
    return true;
end
$$;

comment on function idem.defer(text, text, uuid, interval, text) is
'Leased: the owner gives up and the outcome is unknown; the lease ends now and the policy decides, as after any lapse. The token stays valid until another attempt or a resolver takes over. retry_in delays resolvers only; after a claim its default grows with every claim. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.defer(text, text, uuid, interval, text) from public;
