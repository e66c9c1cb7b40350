-- Two nested hashes under two independent keys (NMAC, of which HMAC is the one-key form).
create or replace function idem_private.keyed_hash(inner_key bytea, outer_key bytea, message bytea) returns bytea
language sql immutable as $$
    select sha256(outer_key || sha256(inner_key || message))
$$;

comment on function idem_private.keyed_hash(bytea, bytea, bytea) is
'SHA-256 of a message that only the holder of idem_private.secret can compute.';

revoke all on function idem_private.keyed_hash(bytea, bytea, bytea) from public;
