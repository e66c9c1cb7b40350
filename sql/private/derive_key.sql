-- A version 8 UUID (RFC 9562): 122 bits of the hash, version and variant where a reader expects them.
create or replace function idem_private.derive_key(
    inner_key bytea, outer_key bytea, scope text, key text, step text
) returns uuid
language plpgsql immutable as $$
declare
    digest bytea;
begin
    digest := substr(
        idem_private.keyed_hash(
            derive_key.inner_key,
            derive_key.outer_key,
            convert_to(
                'downstream:' || length(derive_key.scope)::text || ':' || derive_key.scope
                || length(derive_key.key)::text || ':' || derive_key.key || derive_key.step,
                'UTF8'
            )
        ),
        1, 16
    );
    digest := set_byte(digest, 6, (get_byte(digest, 6) & 15) | 128);
    digest := set_byte(digest, 8, (get_byte(digest, 8) & 63) | 128);
    return encode(digest, 'hex')::uuid;
end
$$;

comment on function idem_private.derive_key(bytea, bytea, text, text, text) is
'The key under which (scope, key, step) is passed on to the next system.';

revoke all on function idem_private.derive_key(bytea, bytea, text, text, text) from public;
