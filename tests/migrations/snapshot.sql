-- What is in both schemas, as (kind, name, definition), independent of oids and of when it was made.
with schemas as (
    select n.* from pg_namespace as n where n.nspname in ('idem', 'idem_private')
),

relations as (
    select r.*, format('%s.%s', s.nspname, r.relname) as name
    from pg_class as r
    join schemas as s on s.oid = r.relnamespace
    where r.relkind not in ('i', 'I', 't')
),

objects as (
    select 'schema' as kind, s.nspname::text as name, s.nspowner as owner, s.nspacl as acl, null as definition,
        obj_description(s.oid, 'pg_namespace') as comment
    from schemas as s

    union all
    select 'relation', r.name, r.relowner, r.relacl,
        format(
            'kind %s, persistence %s, options %s, row security %s/%s, identity %s, %s', r.relkind, r.relpersistence,
            r.reloptions, r.relrowsecurity, r.relforcerowsecurity, r.relreplident, pg_get_viewdef(r.oid)
        ),
        obj_description(r.oid, 'pg_class')
    from relations as r

    union all
    select 'column',
        -- the place among the columns that are there: a dropped one leaves a gap in attnum
        format('%s %s %s', r.name, row_number() over (partition by r.oid order by a.attnum), a.attname), null, a.attacl,
        format(
            '%s, not null %s, default %s, identity %s, generated %s, collation %s, storage %s, compression %s',
            format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity,
            a.attgenerated, a.attcollation::regcollation, a.attstorage, a.attcompression
        ),
        col_description(r.oid, a.attnum)
    from relations as r
    join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef as d on d.adrelid = r.oid and d.adnum = a.attnum

    union all
    select 'constraint', format('%s %s', coalesce(r.name, c.contypid::regtype::text), c.conname), null, null,
        format('%s, validated %s', pg_get_constraintdef(c.oid), c.convalidated), obj_description(c.oid, 'pg_constraint')
    from pg_constraint as c
    join schemas as s on s.oid = c.connamespace
    left join relations as r on r.oid = c.conrelid

    union all
    select 'index', format('%s %s', r.name, i.indexrelid::regclass), null, null,
        format('%s, valid %s', pg_get_indexdef(i.indexrelid), i.indisvalid), obj_description(i.indexrelid, 'pg_class')
    from relations as r
    join pg_index as i on i.indrelid = r.oid

    union all
    select 'trigger', format('%s %s', r.name, t.tgname), null, null,
        format('%s, enabled %s', pg_get_triggerdef(t.oid), t.tgenabled), obj_description(t.oid, 'pg_trigger')
    from relations as r
    join pg_trigger as t on t.tgrelid = r.oid and not t.tgisinternal

    union all
    select 'policy', format('%s %s', r.name, p.polname), null, null,
        format(
            '%s, permissive %s, roles %s, using %s, check %s', p.polcmd, p.polpermissive, p.polroles::regrole[],
            pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)
        ),
        obj_description(p.oid, 'pg_policy')
    from relations as r
    join pg_policy as p on p.polrelid = r.oid

    union all
    select 'rule', format('%s %s', r.name, w.rulename), null, null, pg_get_ruledef(w.oid), obj_description(w.oid, 'pg_rewrite')
    from relations as r
    join pg_rewrite as w on w.ev_class = r.oid and w.rulename <> '_RETURN'

    union all
    select 'function', format('%s.%s(%s)', s.nspname, p.proname, pg_get_function_identity_arguments(p.oid)), p.proowner,
        p.proacl,
        format('kind %s, md5 %s', p.prokind, case when p.prokind <> 'a' then md5(pg_get_functiondef(p.oid)) end),
        obj_description(p.oid, 'pg_proc')
    from pg_proc as p
    join schemas as s on s.oid = p.pronamespace

    union all
    select 'type', format('%s.%s', s.nspname, t.typname), t.typowner, t.typacl,
        format(
            'kind %s, base %s, not null %s, labels %s', t.typtype, format_type(t.typbasetype, t.typtypmod), t.typnotnull,
            array(select e.enumlabel from pg_enum as e where e.enumtypid = t.oid order by e.enumsortorder)
        ),
        obj_description(t.oid, 'pg_type')
    from pg_type as t
    join schemas as s on s.oid = t.typnamespace

    union all
    select 'default privileges', format('%s %s', s.nspname, d.defaclobjtype), d.defaclrole, d.defaclacl, null, null
    from pg_default_acl as d
    join schemas as s on s.oid = d.defaclnamespace
)

select
    o.kind,
    o.name,
    format(
        'owner %s, acl %s, comment %L, %s', o.owner::regrole,
        (select array_agg(a.item::text order by a.item::text) from unnest(o.acl) as a (item)), o.comment, o.definition
    ) as definition
from objects as o
order by o.kind, o.name;
