create or replace function idem_private.part_head(head text) returns text
language plpgsql immutable as $$
begin
    return (
        select string_agg(h.line, E'\r\n' order by h.line collate "C")
        from (
            select
                lower(split_part(l.line, ':', 1) collate "C") || ':'
                || btrim(substr(l.line, length(split_part(l.line, ':', 1)) + 2), E' \t') as line
            from unnest(string_to_array(part_head.head, E'\r\n')) as l (line)
            where l.line <> ''
        ) as h
    );
end
$$;

comment on function idem_private.part_head(text) is
'The header fields of a part of a multipart body, the same for every order and spelling of their names.';

revoke all on function idem_private.part_head(text) from public;
