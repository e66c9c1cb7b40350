create or replace function idem.extend(
    scope text, key text, token uuid, lease interval default null
) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    held idem_private.reservation;
begin
    perform idem_private.check_scope(extend.scope);
    extend.lease := idem_private.check_interval('lease', extend.lease);
    held := idem_private.hold(extend.scope, extend.key, extend.token);
    held := idem_private.renew_lease(held, extend.lease);
    return held.lease_until;
end
$$;

comment on function idem.extend(text, text, uuid, interval) is
'Leased: heartbeat. The lease now ends after the given length, or the length it was reserved with; returns when. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.extend(text, text, uuid, interval) from public;
