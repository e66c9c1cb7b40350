-- The boundary is another one in every attempt, so it does not count; nor does what stands before the first part and
-- after the last. The escaped text has line ends and boundaries where the bytes have them.
create or replace function idem_private.read_multipart(
    body bytea, content_type text, out names bytea[], out contents bytea[]
)
language plpgsql immutable as $$
declare
    max_bytes constant int := 8388608;
    max_parts constant int := 10000;
    boundary text[];
    pieces text[];
    closing bigint;
begin
    boundary := regexp_match(
        read_multipart.content_type collate "C",
        ';[ \t]*boundary[ \t]*=[ \t]*(?:"([^"\\]{1,70})"|([^][ \t",;:()<>@\\/?={}]{1,70}))[ \t]*(?:;|$)',
        'i'
    );
    if boundary is null or octet_length(read_multipart.body) > max_bytes then
        return;
    end if;
    pieces := string_to_array(
        E'\r\n' || encode(read_multipart.body, 'escape'), E'\r\n--' || coalesce(boundary[1], boundary[2])
    );
    select min(p.position) into closing
    from unnest(pieces) with ordinality as p (piece, position)
    where p.position > 1 and p.piece like '--%';
    if closing is null or closing > max_parts then
        return;
    end if;

    select
        coalesce(array_agg(decode(coalesce(p.named[1], p.named[2], ''), 'escape') order by p.position), '{}'),
        coalesce(
            array_agg(
                decode(idem_private.part_head(p.head) || E'\r\n\r\n' || substr(p.piece, p.blank_line + 4), 'escape')
                order by p.position
            ),
            '{}'
        )
    into read_multipart.names, read_multipart.contents
    from (
        select
            s.position,
            s.piece,
            s.blank_line,
            left(s.piece, s.blank_line - 1) as head,
            regexp_match(
                left(s.piece, s.blank_line - 1) collate "C",
                '\r\ncontent-disposition[ \t]*:[^\r\n]*;[ \t]*name='
                '(?:"((?:[^"\\]|\\\\.|\\[0-7]{3})*)"|([^ \t;"\r\n]+))',
                'i'
            ) as named
        from (
            select
                u.position,
                ltrim(u.piece, E' \t') as piece,
                strpos(ltrim(u.piece, E' \t'), E'\r\n\r\n') as blank_line
            from unnest(pieces) with ordinality as u (piece, position)
            where u.position > 1 and u.position < closing
        ) as s
        where s.blank_line > 0 and s.piece like E'\r\n%'
    ) as p;
    if cardinality(read_multipart.names) < closing - 2 then
        read_multipart.names := null;
        read_multipart.contents := null;
    end if;
end
$$;

comment on function idem_private.read_multipart(bytea, text) is
'Names of the parts of a multipart body in order and what they are, or null where it must be taken by its bytes.';

revoke all on function idem_private.read_multipart(bytea, text) from public;
