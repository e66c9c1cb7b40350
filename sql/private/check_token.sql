create or replace function idem_private.check_token(token uuid) returns void
language plpgsql immutable as $$
begin
    -- The nil UUID is what idem.once writes: a mark has no owner.
    if check_token.token = '00000000-0000-0000-0000-000000000000' then
        raise exception using
            errcode = '22023',
            message = 'the token must be a random UUID',
            detail = jsonb_build_object('code', 'token_not_random', 'argument', 'token')::text,
            hint = 'Make a new one for every attempt, or leave it out.';
    end if;
end
$$;

comment on function idem_private.check_token(uuid) is 'Raises 22023 for the nil UUID.';

revoke all on function idem_private.check_token(uuid) from public;
