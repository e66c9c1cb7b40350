create or replace function idem_private.part_pointers(names bytea[]) returns text[]
language plpgsql immutable as $$
declare
    readable text[];
begin
    begin
        readable := array(
            select convert_from(n.name, 'UTF8') from unnest(part_pointers.names) with ordinality as n (name, position)
            order by n.position
        );
    exception
        when character_not_in_repertoire or untranslatable_character then
            readable := array(
                select encode(n.name, 'escape') from unnest(part_pointers.names) with ordinality as n (name, position)
                order by n.position
            );
    end;
    return array(
        select '/' || replace(replace(r.name, '~', '~0'), '/', '~1')
        from unnest(readable) with ordinality as r (name, position)
        order by r.position
    );
end
$$;

comment on function idem_private.part_pointers(bytea[]) is
'The names of the parts of a form as JSON pointers; escaped where one is no text.';

revoke all on function idem_private.part_pointers(bytea[]) from public;
