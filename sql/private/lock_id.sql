-- The hash of the scope seeds that of the key, so that no two pairs are the same text. 64 bits: a collision is a matter
-- of billions of keys in flight, and then costs a passing in_progress only.
create or replace function idem_private.lock_id(scope text, key text) returns bigint
language sql immutable as $$
    select hashtextextended(key collate "C", hashtextextended(scope collate "C", 7235997118563091))
$$;

comment on function idem_private.lock_id(text, text) is
'Transaction-level advisory lock of a key that is being inserted.';

revoke all on function idem_private.lock_id(text, text) from public;
