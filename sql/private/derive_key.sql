-- A version 8 UUID (RFC 9562): the bytes that hold version and variant are fixed, the other 112 bits are the hash. The
-- lengths keep ('a', 'bc') and ('ab', 'c') apart.
create or replace function idem_private.derive_key(secret bytea, scope text, key text, step text) returns uuid
language sql stable as $$
    select encode(
        overlay(
            overlay(
                idem_private.keyed_hash(
                    secret, int4send(length(scope)) || int4send(length(key)) || convert_to(scope || key || step, 'UTF8')
                )
                placing '\x80'::bytea from 7
            )
            placing '\x80'::bytea from 9
        ),
        'hex'
    )::uuid
$$;

comment on function idem_private.derive_key(bytea, text, text, text) is
'The key under which (scope, key, step) is passed on to the next system.';

revoke all on function idem_private.derive_key(bytea, text, text, text) from public;
