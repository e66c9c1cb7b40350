-- In place rather than delete and insert: the key never disappears from the index, so that nobody can insert it.
create or replace function idem_private.replace_expired(
    held idem_private.reservation,
    fingerprint bytea,
    fields jsonb,
    policy text,
    ttl interval,
    leased boolean,
    lease interval,
    state jsonb,
    token uuid,
    completed_at timestamptz
) returns idem_private.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    at constant timestamptz := coalesce(replace_expired.completed_at, idem_private.clock());
    taken_at constant timestamptz := clock_timestamp();
    taken_by constant xid8 := pg_current_xact_id();
    taken idem_private.reservation;
begin
    update idem_private.reservation as r
    set
        fingerprint = replace_expired.fingerprint,
        fields = replace_expired.fields,
        policy = replace_expired.policy,
        created_at = at,
        expires_at = at + replace_expired.ttl,
        expired_at = null,
        purge_at = null,
        owned_at = taken_at,
        owner_xid = taken_by,
        token = replace_expired.token,
        attempt = 1,
        leased = replace_expired.leased,
        must_complete = not replace_expired.leased and replace_expired.completed_at is null,
        put_off = false,
        lease = replace_expired.lease,
        lease_until = at + replace_expired.lease,
        recovery_point = null,
        state = replace_expired.state,
        released_at = null,
        completed_at = replace_expired.completed_at,
        status = null,
        headers = null,
        body = null
    where r.scope = held.scope and r.key = held.key
    returning r.* into taken;
    return taken;
end
$$;

comment on function idem_private.replace_expired(
    idem_private.reservation, bytea, jsonb, text, interval, boolean, interval, jsonb, uuid, timestamptz
) is 'A new life of a key whose expired row the caller holds locked; finished already where it is a mark.';

revoke all on function idem_private.replace_expired(
    idem_private.reservation, bytea, jsonb, text, interval, boolean, interval, jsonb, uuid, timestamptz
) from public;
