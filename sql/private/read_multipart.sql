-- The boundary is another one in every attempt, so it does not count; nor does what stands before the first part and
-- after the last. To find the next boundary what is left is copied, which bounds the number of parts of a large body.
create or replace function idem_private.read_multipart(
    body bytea, content_type text, out names bytea[], out contents bytea[]
)
language plpgsql immutable as $$
declare
    max_bytes constant int := 16777216;
    max_copied constant bigint := 4294967296;
    max_head constant int := 16384;
    boundary text[];
    delimiter bytea;
    rest bytea;
    piece bytea;
    head text;
    blank_line int;
    named text[];
    found_names bytea[] := array[]::bytea[];
    found_contents bytea[] := array[]::bytea[];
begin
    boundary := regexp_match(
        read_multipart.content_type collate "C",
        ';[ \t]*boundary[ \t]*=[ \t]*(?:"([^"\\]{1,70})"|([^][ \t",;:()<>@\\/?={}]{1,70}))[ \t]*(?:;|$)',
        'i'
    );
    if boundary is null or octet_length(read_multipart.body) > max_bytes then
        return;
    end if;
    delimiter := convert_to(E'\r\n--' || coalesce(boundary[1], boundary[2]), 'UTF8');
    rest := convert_to(E'\r\n', 'UTF8') || read_multipart.body;

    loop
        -- up to the next delimiter; before the first one there is no part
        if position(delimiter in rest) = 0 then
            return;
        end if;
        if piece is null then
            piece := '';
        else
            piece := substr(rest, 1, position(delimiter in rest) - 1);
            blank_line := position('\x0d0a0d0a'::bytea in piece);
            if blank_line = 0 or blank_line > max_head then
                return;
            end if;
            head := ltrim(encode(substr(piece, 1, blank_line - 1), 'escape'), E' \t');
            if head <> '' and left(head, 2) <> E'\r\n' then
                return;
            end if;
            named := regexp_match(
                head collate "C",
                '\r\ncontent-disposition[ \t]*:[^\r\n]*;[ \t]*name='
                '(?:"((?:[^"\\]|\\\\.|\\[0-7]{3})*)"|([^ \t;"\r\n]+))',
                'i'
            );
            found_names := found_names || decode(coalesce(named[1], named[2], ''), 'escape');
            found_contents := found_contents || sha256(
                decode(coalesce(idem_private.part_head(head), ''), 'escape') || sha256(substr(piece, blank_line + 4))
            );
            if cardinality(found_names) * octet_length(read_multipart.body)::bigint > max_copied then
                return;
            end if;
        end if;
        rest := substr(rest, position(delimiter in rest) + octet_length(delimiter));
        if substr(rest, 1, 2) = '--' then
            read_multipart.names := found_names;
            read_multipart.contents := found_contents;
            return;
        end if;
    end loop;
end
$$;

comment on function idem_private.read_multipart(bytea, text) is
'Names of the parts of a multipart body in order and digests of them, or null where it must be taken by its bytes.';

revoke all on function idem_private.read_multipart(bytea, text) from public;
