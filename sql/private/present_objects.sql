-- A dump restored on another version of PostgreSQL must not look changed. What is read here is the same on every
-- version, but for the text of a view, which the server prints in its own way: its key names the version, and drift
-- compares only keys that both sides have. Left out is what an administrator may well set: grants to roles, storage
-- parameters of tables. The rows of extensions are theirs, only the extension itself is listed.
create or replace function idem_private.present_objects() returns setof idem_private.object
language sql stable
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set quote_all_identifiers = off
as $$
with schemas as (
    select n.* from pg_namespace as n where n.nspname in ('idem', 'idem_private')
),

contained as (
    select s.nspname, s.nspowner, d.classid, d.objid
    from schemas as s
    inner join pg_depend as d on d.refclassid = 'pg_namespace'::regclass and d.refobjid = s.oid and d.deptype = 'n'
    where not exists (
        select from pg_depend as e where e.classid = d.classid and e.objid = d.objid and e.deptype = 'e'
    )
),

-- A composite type has its columns in pg_class, as a table has.
relations as (
    select r.*, c.nspowner, format('%I.%I', c.nspname, r.relname) as identity
    from contained as c
    inner join pg_class as r
        on c.classid = 'pg_class'::regclass and r.oid = c.objid
        or c.classid = 'pg_type'::regclass and r.reltype = c.objid and r.relkind = 'c'
    where r.relkind not in ('i', 'I', 't')
),

listed as (
    select
        'pg_namespace'::regclass as classid, s.oid as objid, 0 as objsubid, null as name, null as part_of,
        jsonb_build_object(
            'granted to public', exists (select from aclexplode(s.nspacl) as a where a.grantee = 0)
        ) as definition
    from schemas as s

    union all
    select
        -- pg_identify_object writes some types in another way since version 18
        c.classid, p.oid, 0, format('%I.%I(%s)', c.nspname, p.proname, oidvectortypes(p.proargtypes)), null,
        jsonb_build_object(
            'kind', p.prokind, 'language', l.lanname, 'body', md5(p.prosrc), 'settings', p.proconfig,
            'arguments', pg_get_function_arguments(p.oid), 'result', pg_get_function_result(p.oid),
            'volatility', p.provolatile, 'parallel', p.proparallel, 'strict', p.proisstrict,
            'security definer', p.prosecdef, 'leakproof', p.proleakproof, 'cost', p.procost, 'rows', p.prorows,
            'owned by the owner of the schema', p.proowner = c.nspowner,
            'granted to public', exists (
                select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a where a.grantee = 0
            )
        )
    from contained as c
    inner join pg_proc as p on c.classid = 'pg_proc'::regclass and p.oid = c.objid
    inner join pg_language as l on l.oid = p.prolang

    union all
    select
        'pg_class'::regclass, r.oid, 0, null, null,
        jsonb_build_object(
            'persistence', r.relpersistence,
            'row security', r.relrowsecurity,
            'row security for the owner', r.relforcerowsecurity,
            'owned by the owner of the schema', r.relowner = r.nspowner,
            'granted to public', exists (select from aclexplode(r.relacl) as a where a.grantee = 0)
        )
        || case
            when r.relkind in ('v', 'm') then jsonb_build_object(
                'options', r.reloptions,
                'query on ' || current_setting('server_version_num')::int / 10000, md5(pg_get_viewdef(r.oid))
            )
            else '{}'
        end
    from relations as r
    where r.relkind <> 'c'

    union all
    select
        c.classid, t.oid, 0, null, null,
        jsonb_build_object(
            'kind', t.typtype, 'base', format_type(t.typbasetype, t.typtypmod), 'not null', t.typnotnull,
            'labels', array(select e.enumlabel from pg_enum as e where e.enumtypid = t.oid order by e.enumsortorder)
        )
    from contained as c
    inner join pg_type as t on c.classid = 'pg_type'::regclass and t.oid = c.objid

    union all
    select
        'pg_class'::regclass, r.oid, a.attnum, null, r.identity,
        jsonb_build_object(
            'type', format_type(a.atttypid, a.atttypmod), 'collation', a.attcollation::regcollation::text,
            'not null', a.attnotnull, 'default', pg_get_expr(d.adbin, d.adrelid),
            'identity', a.attidentity, 'generated', a.attgenerated
        )
    from relations as r
    inner join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum

    union all
    select
        'pg_class'::regclass, i.indexrelid, 0, null, r.identity,
        jsonb_build_object('definition', pg_get_indexdef(i.indexrelid), 'valid', i.indisvalid)
    from relations as r
    inner join pg_index as i on i.indrelid = r.oid

    union all
    -- Since version 18 there is one for each NOT NULL too; constraint triggers are listed as triggers.
    select
        'pg_constraint'::regclass, c.oid, 0, null, r.identity,
        jsonb_build_object('definition', pg_get_constraintdef(c.oid), 'valid', c.convalidated)
    from relations as r
    inner join pg_constraint as c on c.conrelid = r.oid and c.contype not in ('n', 't')

    union all
    select
        'pg_trigger'::regclass, t.oid, 0, null, r.identity,
        jsonb_build_object('definition', pg_get_triggerdef(t.oid), 'enabled', t.tgenabled)
    from relations as r
    inner join pg_trigger as t on t.tgrelid = r.oid and not t.tgisinternal

    union all
    -- Of these there are none of ours.
    select 'pg_rewrite'::regclass, w.oid, 0, null, r.identity, '{}'
    from relations as r
    inner join pg_rewrite as w on w.ev_class = r.oid and w.rulename <> '_RETURN'

    union all
    select 'pg_policy'::regclass, p.oid, 0, null, r.identity, '{}'
    from relations as r
    inner join pg_policy as p on p.polrelid = r.oid

    union all
    select c.classid, c.objid, 0, null, null, '{}'
    from contained as c
    where c.classid not in ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass)
)

select i.type, coalesce(l.name, i.identity), l.part_of, l.definition
from listed as l
cross join lateral pg_identify_object(l.classid, l.objid, l.objsubid) as i
$$;

comment on function idem_private.present_objects() is 'Everything that is in both schemas now, as idem_private.object records it.';

revoke all on function idem_private.present_objects() from public;
