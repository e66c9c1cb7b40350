-- A text with n commas outside strings has n + 1 leaves, so it is known beforehand whether the walk is worth it. A leaf
-- is hashed together with its pointer, so that equal values do not look equal.
create or replace function idem_private.json_fields(roots jsonb, value text, mark text, secret bytea) returns jsonb
language plpgsql immutable as $$
declare
    max_leaves constant int := 1000;
    max_pointer constant int := 500;
    fields jsonb;
    readable boolean;
begin
    if octet_length(replace(json_fields.value, ',', '')) <= octet_length(json_fields.value) - max_leaves then
        json_fields.value := regexp_replace(json_fields.value collate "C", '"(?:[^"\\]|\\.)*"', '', 'g');
        if octet_length(replace(json_fields.value, ',', '')) <= octet_length(json_fields.value) - max_leaves then
            return null;
        end if;
    end if;

    with recursive node (pointer, value) as (
        select r.key, r.value
        from jsonb_each(json_fields.roots) as r
        union all
        select
            n.pointer || '/' || coalesce(replace(replace(c.key, '~', '~0'), '/', '~1'), (c.position - 1)::text),
            coalesce(c.member, c.element)
        from node as n
        cross join lateral rows from (
            jsonb_each(case when jsonb_typeof(n.value) = 'object' then n.value end),
            jsonb_array_elements(case when jsonb_typeof(n.value) = 'array' then n.value end)
        ) with ordinality as c (key, member, element, position)
        where jsonb_typeof(n.value) in ('object', 'array') and length(n.pointer) <= max_pointer
    )
    select
        jsonb_object_agg(
            n.pointer,
            idem_private.short_hash(
                json_fields.secret,
                convert_to(
                    n.pointer || ' ' || case
                        when jsonb_typeof(n.value) = 'number' then trim_scale(n.value::numeric)::text
                        else n.value::text
                    end,
                    'UTF8'
                )
            )
        ),
        bool_and(length(n.pointer) <= max_pointer and strpos(n.pointer, json_fields.mark) = 0)
    into fields, readable
    from node as n
    where jsonb_typeof(n.value) not in ('object', 'array') or n.value in ('{}', '[]')
        or length(n.pointer) > max_pointer;
    return case when readable then fields when fields is null then '{}' end;
end
$$;

comment on function idem_private.json_fields(jsonb, text, text, bytea) is
'Short hashes of the leaves of a document by their pointers, or null where there are too many, or they have no names.';

revoke all on function idem_private.json_fields(jsonb, text, text, bytea) from public;
