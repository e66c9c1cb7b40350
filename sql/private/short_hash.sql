create or replace function idem_private.short_hash(secret bytea, message bytea) returns text
language sql immutable as $$
    select encode(substr(sha256(secret || '\x02' || message), 1, 6), 'hex')
$$;

comment on function idem_private.short_hash(bytea, bytea) is
'48 bits that name a value without telling it: enough to see a difference, under the secret of this database.';

revoke all on function idem_private.short_hash(bytea, bytea) from public;
