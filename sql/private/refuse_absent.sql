create or replace function idem_private.refuse_absent(scope text, key text) returns void
language plpgsql volatile as $$
begin
    perform idem_private.require_fresh_snapshot(refuse_absent.scope, refuse_absent.key);
    raise exception using
        errcode = 'IK003',
        message = 'there is no such reservation',
        detail = jsonb_build_object('code', 'no_such_reservation')::text,
        hint = 'It was never made, was rolled back or released, or has expired and was purged.';
end
$$;

comment on function idem_private.refuse_absent(text, text) is 'Raises IK003, or 40001 where the snapshot is too old to tell.';

revoke all on function idem_private.refuse_absent(text, text) from public;
