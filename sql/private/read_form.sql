-- As browsers read it: fields are between ampersands, empty ones do not count, a plus is a blank. The escaped text has
-- the separators where the bytes have them, whatever else the bytes are and whatever the encoding of the database is.
create or replace function idem_private.read_form(body bytea, out names bytea[], out contents bytea[])
language plpgsql immutable as $$
declare
    max_bytes constant int := 1048576;
    max_fields constant int := 10000;
    max_escapes constant int := 100000;
    content text;
begin
    if octet_length(read_form.body) > max_bytes then
        return;
    end if;
    content := replace(encode(read_form.body, 'escape'), '+', ' ');
    if octet_length(content) - octet_length(replace(content, '&', '')) >= max_fields
        or octet_length(content) - octet_length(replace(content, '%', '')) > max_escapes then
        return;
    end if;
    select
        coalesce(array_agg(idem_private.percent_decoded(split_part(f.field, '=', 1)) order by f.position), '{}'),
        coalesce(
            array_agg(
                idem_private.percent_decoded(substr(f.field, length(split_part(f.field, '=', 1)) + 2))
                order by f.position
            ),
            '{}'
        )
    into read_form.names, read_form.contents
    from unnest(string_to_array(content, '&')) with ordinality as f (field, position)
    where f.field <> '';
end
$$;

comment on function idem_private.read_form(bytea) is
'Names and contents of the fields of a form in order, or null where it must be taken by its bytes.';

revoke all on function idem_private.read_form(bytea) from public;
