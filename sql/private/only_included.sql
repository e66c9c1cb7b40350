create or replace function idem_private.only_included(doc jsonb, include text[]) returns jsonb
language sql immutable as $$
    select coalesce(jsonb_object_agg(i.pointer, doc #> i.path), '{}')
    from (
        select p.pointer, idem_private.pointer_path(doc, p.pointer) as path from unnest(include) as p (pointer)
    ) as i
    where i.path is not null
$$;

comment on function idem_private.only_included(jsonb, text[]) is
'What these pointers lead to, by pointer.';

revoke all on function idem_private.only_included(jsonb, text[]) from public;
