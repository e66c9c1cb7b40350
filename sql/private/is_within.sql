-- With prefix client:4 neither client:42 nor Client:4. The collation is fixed, since the caller's argument may bring
-- one that takes different characters for equal.
create or replace function idem_private.is_within(scope text, prefixes text[]) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select prefixes is null or exists (
        select from unnest(prefixes) as allowed (prefix)
        where scope collate "C" = allowed.prefix
            or starts_with(scope collate "C", allowed.prefix || ':')
            or starts_with(scope collate "C", allowed.prefix || '/')
            or (
                allowed.prefix collate "C" ~ '[!-/:-@[-`{-~]$' and starts_with(scope collate "C", allowed.prefix)
            )
    )
$$;

comment on function idem_private.is_within(text, text[]) is
'Whether a scope equals one of the prefixes, or continues it after a colon, a slash or the sign of punctuation that it ends with; null prefixes hold all.';

revoke all on function idem_private.is_within(text, text[]) from public;
