-- A secret prefix, and half of the hash thrown away: what is left cannot be extended to the hash of a longer message.
create or replace function idem_private.keyed_hash(secret bytea, message bytea) returns bytea
language sql immutable as $$
    select substr(sha256(secret || message), 1, 16)
$$;

comment on function idem_private.keyed_hash(bytea, bytea) is
'128 bits that only the holder of idem_private.secret can compute for a message.';

revoke all on function idem_private.keyed_hash(bytea, bytea) from public;
