-- What belongs to a relation that is missing or extra as a whole is not named beside it.
create or replace function idem_private.drift() returns table (object text, problem text, detail text)
language sql stable set search_path = pg_catalog, pg_temp as $$
with compared as (
    select
        coalesce(r.kind, p.kind) as kind,
        coalesce(r.name, p.name) as name,
        coalesce(r.part_of, p.part_of) as part_of,
        case
            when p.name is null then 'missing'
            when r.name is null then 'extra'
            when difference.detail is not null then 'changed'
        end as problem,
        difference.detail
    from idem_private.object as r
    full join idem_private.present_objects() as p on r.kind = p.kind and r.name = p.name
    cross join lateral (
        select string_agg(format('%s was %s, is %s', key, was.value, now.value), '; ' order by key) as detail
        from jsonb_each(r.definition) as was
        inner join jsonb_each(p.definition) as now using (key)
        where was.value <> now.value
    ) as difference
)

select c.kind || ' ' || c.name, c.problem, c.detail
from compared as c
where c.problem is not null and not exists (
    select from compared as whole
    where whole.problem in ('missing', 'extra') and whole.name = c.part_of and whole.part_of is null
)
order by c.kind, c.name
$$;

comment on function idem_private.drift() is
'What differs from the installed revision: object, problem (changed, missing or extra), and how it changed.';

revoke all on function idem_private.drift() from public;
