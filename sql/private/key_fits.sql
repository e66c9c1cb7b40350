-- The quick yes for nearly every call; idem_private.check_key knows every rule, and says which one was broken. A
-- newline is in neither set of characters, so that one regular expression can look at both texts; and once they are
-- known to be ASCII, their bytes are their characters.
create or replace function idem_private.key_fits(
    scope text, key text, min_length int, max_length int, pattern text
) returns boolean
language sql immutable as $$
    select pattern is null and octet_length(key) between min_length and max_length and octet_length(scope) <= 255
        and (key || e'\n' || scope) collate "C" ~ '^[!#-~][ -~]*\n[!-~][ -~]*$'
$$;

comment on function idem_private.key_fits(text, text, int, int, text) is
'True only if the scope and the key are certainly acceptable: plain ASCII that begins with neither blank nor quote.';

revoke all on function idem_private.key_fits(text, text, int, int, text) from public;
