-- The public API, one line each: what callers in any language rely on.
select line
from (
    select
        format(
            '%s %I.%I(%s) -> %s', case p.prokind when 'p' then 'procedure' else 'function' end, n.nspname, p.proname,
            pg_get_function_arguments(p.oid), coalesce(pg_get_function_result(p.oid), 'nothing')
        ) as line
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = 'idem'

    union all
    select
        format(
            '%s %I.%I(%s)', case r.relkind when 'c' then 'type' when 'v' then 'view' else 'relation' end, n.nspname,
            r.relname,
            string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum)
        )
    from pg_class as r
    join pg_namespace as n on n.oid = r.relnamespace
    join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    where n.nspname = 'idem'
    group by r.relkind, n.nspname, r.relname

    union all
    select format('%s %I.%I', 'other type', n.nspname, t.typname)
    from pg_type as t
    join pg_namespace as n on n.oid = t.typnamespace
    where n.nspname = 'idem' and t.typtype <> 'c' and t.typcategory <> 'A'
) as api
order by line collate "C";
