-- An element of an array leaves a null behind, so that the others keep their numbers.
create or replace function idem_private.without_ignored(doc jsonb, ignore text[]) returns jsonb
language plpgsql immutable as $$
declare
    pointer text;
    path text[];
begin
    foreach pointer in array without_ignored.ignore loop
        path := idem_private.pointer_path(without_ignored.doc, pointer);
        without_ignored.doc := case
            when path is null then without_ignored.doc
            when path = '{}' then 'null'
            when jsonb_typeof(without_ignored.doc #> path[:cardinality(path) - 1]) = 'object'
                then without_ignored.doc #- path
            else jsonb_set(without_ignored.doc, path, 'null')
        end;
    end loop;
    return without_ignored.doc;
end
$$;

comment on function idem_private.without_ignored(jsonb, text[]) is
'The document without what these pointers lead to.';

revoke all on function idem_private.without_ignored(jsonb, text[]) from public;
