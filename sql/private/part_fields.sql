create or replace function idem_private.part_fields(
    names bytea[],
    contents bytea[],
    ignore text[],
    include text[],
    secret bytea,
    out content bytea,
    out fields jsonb
)
language plpgsql stable as $$
#variable_conflict use_column
declare
    max_fields constant int := 1000;
    pointers constant text[] := idem_private.part_pointers(part_fields.names);
begin
    with part as (
        select
            p.position,
            p.pointer,
            int4send(octet_length(p.name)) || p.name || int4send(octet_length(p.content)) || p.content as entry
        from unnest(pointers, part_fields.names, part_fields.contents)
            with ordinality as p (pointer, name, content, position)
        where (part_fields.ignore is null or not array['', p.pointer] && part_fields.ignore)
            and (coalesce(part_fields.include, '{}') = '{}' or array['', p.pointer] && part_fields.include)
    ),
    field as (
        select p.pointer, string_agg(p.entry, '' order by p.position) as entries from part as p group by p.pointer
    )
    select
        (select coalesce(string_agg(p.entry, '' order by p.position), '') from part as p),
        (
            select case when count(*) <= max_fields then jsonb_object_agg(
                f.pointer,
                idem_private.short_hash(part_fields.secret, convert_to(f.pointer || ' ', 'UTF8') || f.entries)
            ) end
            from field as f
        )
    into part_fields.content, part_fields.fields;
    if part_fields.content = '' then
        part_fields.fields := '{}';
    end if;
end
$$;

comment on function idem_private.part_fields(bytea[], bytea[], text[], text[], bytea) is
'What counts of the parts of a form, and short hashes by pointer, or null where there are too many.';

revoke all on function idem_private.part_fields(bytea[], bytea[], text[], text[], bytea) from public;
