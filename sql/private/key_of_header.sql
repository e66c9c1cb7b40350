-- RFC 9651 calls it a String; most clients send the characters alone.
create or replace function idem_private.key_of_header(header text) returns text
language sql immutable as $$
    select
        case
            when btrim(header, E' \t') collate "C" ~ '^"([ !#-[\]-~]|\\["\\])*"$'
                then regexp_replace(
                    substr(btrim(header, E' \t'), 2, length(btrim(header, E' \t')) - 2), '\\(["\\])', '\1', 'g'
                )
            when btrim(header, E' \t') collate "C" ~ '^[^[:space:],"\\]+$' then btrim(header, E' \t')
        end
$$;

comment on function idem_private.key_of_header(text) is
'The key that the value of an Idempotency-Key header names, quoted or bare; null where it names none.';

revoke all on function idem_private.key_of_header(text) from public;
