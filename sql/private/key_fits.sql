-- The quick yes for nearly every call; idem_private.check_key knows every rule, and says which one was broken.
create or replace function idem_private.key_fits(
    scope text, key text, min_length int, max_length int, pattern text
) returns boolean
language sql immutable as $$
    select pattern is null and length(key) between min_length and max_length and length(scope) <= 255
        and key collate "C" ~ '^[!#-~][ -~]*$' and scope collate "C" ~ '^[!-~][ -~]*$'
$$;

comment on function idem_private.key_fits(text, text, int, int, text) is
'True only if the scope and the key are certainly acceptable: plain ASCII that begins with neither blank nor quote.';

revoke all on function idem_private.key_fits(text, text, int, int, text) from public;
