-- Both schemas as readable DDL, one row for each object: enough to review what changes, not to be run. A function is
-- its signature and attributes, a view its columns; their text is in sql/.
with relations as (
    select
        r.oid, r.relkind, r.relname, r.reloptions, r.reltype, r.relnamespace::regnamespace::text as schema,
        format('%I.%I', n.nspname, r.relname) as name
    from pg_class as r
    join pg_namespace as n on n.oid = r.relnamespace
    where n.nspname in ('idem', 'idem_private') and r.relkind not in ('i', 't')
),

columns as (
    select
        r.oid,
        string_agg(
            format(
                e'\n    %I %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                case when a.attcollation <> t.typcollation then ' collate ' || a.attcollation::regcollation end,
                case when a.attnotnull then ' not null' end,
                ' default ' || pg_get_expr(d.adbin, d.adrelid)
            ), ',' order by a.attnum
        ) as list
    from relations as r
    join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    join pg_type as t on t.oid = a.atttypid
    left join pg_attrdef as d on d.adrelid = r.oid and d.adnum = a.attnum
    group by r.oid
),

-- PostgreSQL 18 lists NOT NULL among the constraints.
constraints as (
    select
        c.conrelid as oid,
        string_agg(
            format(e',\n    constraint %I %s', c.conname, pg_get_constraintdef(c.oid)), '' order by c.conname collate "C"
        ) as list
    from pg_constraint as c
    where c.contype not in ('n', 't')
    group by c.conrelid
),

ddl as (
    select 1 as place, n.nspname::text as name, format('create schema %I;', n.nspname) as text
    from pg_namespace as n
    where n.nspname in ('idem', 'idem_private')

    union all
    select 2, r.name, format(e'create type %s as (%s\n);', r.name, c.list)
    from relations as r
    join columns as c on c.oid = r.oid
    where r.relkind = 'c'

    union all
    select
        3, r.name,
        format(
            e'create table %s (%s%s\n)%s;', r.name, c.list, s.list,
            ' with (' || array_to_string(r.reloptions, ', ') || ')'
        )
    from relations as r
    join columns as c on c.oid = r.oid
    left join constraints as s on s.oid = r.oid
    where r.relkind = 'r'

    union all
    select 4, r.name || ' ' || i.indexrelid::regclass, pg_get_indexdef(i.indexrelid) || ';'
    from relations as r
    join pg_index as i on i.indrelid = r.oid
    where not exists (select from pg_constraint as c where c.conindid = i.indexrelid)

    union all
    select 5, r.name || ' ' || t.tgname, pg_get_triggerdef(t.oid) || ';'
    from relations as r
    join pg_trigger as t on t.tgrelid = r.oid and not t.tgisinternal

    union all
    select
        6, p.oid::regproc::text,
        format(
            e'create %s %s(%s) returns %s\nlanguage %s %s%s%s%s%s%s;',
            case p.prokind when 'p' then 'procedure' else 'function' end, p.oid::regproc,
            -- one by one: a comma may stand in a default
            (
                select string_agg(
                    format(
                        e'\n    %s%s %s%s',
                        case p.proargmodes[a.position] when 'o' then 'out ' when 'b' then 'inout ' when 'v' then 'variadic ' end,
                        p.proargnames[a.position], format_type(a.type, null),
                        ' default ' || pg_get_function_arg_default(p.oid, a.position::int)
                    ), ',' order by a.position
                ) || e'\n'
                from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality as a (type, position)
                where p.proargmodes[a.position] is distinct from 't'
            ),
            pg_get_function_result(p.oid), l.lanname,
            case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
            case when p.proisstrict then ' strict' end,
            case when p.proleakproof then ' leakproof' end,
            case when p.prosecdef then ' security definer' end,
            case p.proparallel when 's' then ' parallel safe' when 'r' then ' parallel restricted' end,
            (select string_agg(e'\nset ' || c.setting, '' order by c.position)
            from unnest(p.proconfig) with ordinality as c (setting, position))
        )
    from pg_proc as p
    join pg_language as l on l.oid = p.prolang
    where p.pronamespace in (select n.oid from pg_namespace as n where n.nspname in ('idem', 'idem_private'))

    union all
    select 7, r.name, format(e'create view %s (%s\n)%s;', r.name, c.list, ' with (' || array_to_string(r.reloptions, ', ') || ')')
    from relations as r
    join columns as c on c.oid = r.oid
    where r.relkind = 'v'
)

select d.text
from ddl as d
order by d.place, d.name collate "C", d.text collate "C";
