create or replace function idem_private.pointer_path(doc jsonb, pointer text) returns text[]
language plpgsql immutable as $$
declare
    node jsonb := pointer_path.doc;
    path text[] := array[]::text[];
    step text;
begin
    foreach step in array (string_to_array(pointer_path.pointer, '/'))[2:] loop
        step := replace(replace(step, '~1', '/'), '~0', '~');
        -- Postgres also takes -1, 01 and blanks for the number of an element.
        node := case
            when jsonb_typeof(node) = 'object' then node -> step
            when jsonb_typeof(node) = 'array' and step collate "C" ~ '^(0|[1-9][0-9]{0,8})$' then node -> step::int
        end;
        if node is null then
            return null;
        end if;
        path := path || step;
    end loop;
    return path;
end
$$;

comment on function idem_private.pointer_path(jsonb, text) is
'The path of Postgres to where an RFC 6901 pointer leads in this document, or null if that is nowhere.';

revoke all on function idem_private.pointer_path(jsonb, text) from public;
