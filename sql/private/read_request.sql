-- One reading of the body gives both: the fingerprint, which decides, and the fields, which name what differs. What is
-- hashed begins with a byte of its own that is not zero, as that of derived keys is, and of every piece the length is
-- hashed too, so that nothing can stand for something else.
create or replace function idem_private.read_request(
    method text,
    path text,
    body bytea,
    content_type text,
    ignore text[],
    include text[],
    out fingerprint bytea,
    out fields jsonb
)
language plpgsql stable as $$
#variable_conflict use_variable
declare
    -- bytes in all, of the pointers and the hashes
    max_fields constant int := 131072;
    secret bytea;
    mark text;
    media_type constant text := lower(btrim(split_part(read_request.content_type, ';', 1), E' \t') collate "C");
    kind text := 'bytes';
    content bytea := coalesce(read_request.body, '');
    doc jsonb;
    value text;
    names bytea[];
    contents bytea[];
begin
    select s.value into strict secret from idem_private.secret as s;

    if media_type = 'application/json' or media_type like '%/%+json' then
        mark := encode(idem_private.keyed_hash(secret, '\x03'), 'hex');
        doc := idem_private.read_json(content, mark);
    elsif media_type = 'application/x-www-form-urlencoded' then
        select f.names, f.contents into names, contents from idem_private.read_form(content) as f;
    elsif media_type like 'multipart/%' then
        select m.names, m.contents into names, contents
        from idem_private.read_multipart(content, read_request.content_type) as m;
    end if;

    if doc is not null then
        kind := 'json';
        if read_request.ignore is not null then
            doc := idem_private.without_ignored(doc, read_request.ignore);
        end if;
        if cardinality(read_request.include) > 0 then
            kind := 'included';
            doc := idem_private.only_included(doc, read_request.include);
        end if;
        value := idem_private.canonical_json(doc);
        content := convert_to(value, 'UTF8');
        fields := idem_private.json_fields(
            case kind when 'json' then jsonb_build_object('', doc) else doc end, value, mark, secret
        );
        if read_request.ignore is not null then
            fields := fields - read_request.ignore;
        end if;
    elsif names is not null then
        kind := 'parts';
        select p.content, p.fields into content, fields
        from idem_private.part_fields(names, contents, read_request.ignore, read_request.include, secret) as p;
    end if;

    content := idem_private.keyed_hash(secret, '\x04' || convert_to(kind, 'UTF8') || sha256(content));
    if kind = 'bytes' then
        fields := jsonb_build_object('', idem_private.short_hash(secret, content));
    elsif fields is null or pg_column_size(fields) > max_fields then
        fields := jsonb_build_object('body', idem_private.short_hash(secret, content));
    end if;
    if read_request.method is not null then
        fingerprint := idem_private.keyed_hash(
            secret,
            '\x01' || content
            || int4send(octet_length(read_request.method)) || int4send(octet_length(read_request.path))
            || convert_to(
                upper(read_request.method collate "C") || read_request.path || coalesce(media_type, ''), 'UTF8'
            )
        );
        fields := fields || jsonb_build_object(
            'method', idem_private.short_hash(secret, convert_to(upper(read_request.method collate "C"), 'UTF8')),
            'path', idem_private.short_hash(secret, convert_to(read_request.path, 'UTF8')),
            'content_type', idem_private.short_hash(secret, convert_to(coalesce(media_type, ''), 'UTF8'))
        );
    end if;
end
$$;

comment on function idem_private.read_request(text, text, bytea, text, text[], text[]) is
'Fingerprint of a request, and short hashes of its parts; without a method, of its body alone.';

revoke all on function idem_private.read_request(text, text, bytea, text, text[], text[]) from public;
