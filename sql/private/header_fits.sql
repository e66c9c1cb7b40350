-- Whether the scope is acceptable is for reserve to say, and no fault of the client's.
create or replace function idem_private.header_fits(key text, settings idem_private.policy) returns boolean
language plpgsql stable as $$
begin
    perform idem_private.check_key(
        'any', header_fits.key, settings.key_min_length, settings.key_max_length, settings.key_pattern
    );
    return true;
exception
    when sqlstate 'IK001' then
        return false;
end
$$;

comment on function idem_private.header_fits(text, idem_private.policy) is
'Whether a key from a header is acceptable under this policy.';

revoke all on function idem_private.header_fits(text, idem_private.policy) from public;
