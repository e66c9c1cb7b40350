create or replace function idem_private.check_claim(max_rows int, policy text, scope text, key text) returns void
language plpgsql stable as $$
begin
    if check_claim.max_rows < 1 then
        raise exception using
            errcode = '22023',
            message = 'max_rows must be at least 1',
            detail = jsonb_build_object('code', 'max_rows_out_of_range', 'argument', 'max_rows')::text,
            hint = 'It bounds how many rows one call takes.';
    end if;
    -- what is null is not asked for
    perform idem_private.check_key(coalesce(check_claim.scope, '-'), coalesce(check_claim.key, '-'), 1, 1024, '');
    if check_claim.policy is not null and (idem_private.policy_of(check_claim.policy)).name is null then
        perform idem_private.check_call('-', '-', check_claim.policy);
    end if;
end
$$;

comment on function idem_private.check_claim(int, text, text, text) is
'Raises 22023, IK001 or IK006: a resolver that asks for what cannot be would wait for ever.';

revoke all on function idem_private.check_claim(int, text, text, text) from public;
