create or replace function idem_private.check_mode(mode text, lease interval) returns boolean
language plpgsql immutable as $$
begin
    if coalesce(check_mode.mode, 'atomic') = 'atomic' then
        if check_mode.lease is not null then
            raise exception using
                errcode = '22023',
                message = 'a lease goes with mode leased',
                detail = jsonb_build_object('code', 'lease_without_leased', 'argument', 'lease')::text,
                hint = 'An atomic reservation lives as long as its transaction.';
        end if;
        return false;
    end if;
    if check_mode.mode <> 'leased' then
        raise exception using
            errcode = '22023',
            message = 'unknown mode',
            detail = jsonb_build_object('code', 'unknown_mode', 'argument', 'mode')::text,
            hint = 'The modes are atomic and leased.';
    end if;
    return true;
end
$$;

comment on function idem_private.check_mode(text, interval) is
'Whether the mode is leased; raises 22023 for an unknown one, or a lease without it. Null is atomic.';

revoke all on function idem_private.check_mode(text, interval) from public;
