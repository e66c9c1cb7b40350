create or replace function idem_private.granted_objects(role name) returns setof text
language sql stable as $$
    select distinct o.kind || ' ' || o.name
    from (
        select 'schema' as kind, n.oid::regnamespace::text as name, n.nspacl as acl, n.oid as schema
        from pg_catalog.pg_namespace as n
        union all
        select 'routine', p.oid::regprocedure::text, p.proacl, p.pronamespace
        from pg_catalog.pg_proc as p
        union all
        select 'table', c.oid::regclass::text, c.relacl, c.relnamespace
        from pg_catalog.pg_class as c
        union all
        select 'table', c.oid::regclass::text, a.attacl, c.relnamespace
        from pg_catalog.pg_class as c
        inner join pg_catalog.pg_attribute as a on c.oid = a.attrelid
        union all
        select 'type', t.oid::regtype::text, t.typacl, t.typnamespace
        from pg_catalog.pg_type as t
    ) as o
    cross join lateral aclexplode(o.acl) as granted
    inner join pg_catalog.pg_roles as r on granted.grantee = r.oid
    where o.schema in ('idem'::regnamespace, 'idem_private'::regnamespace) and r.rolname = granted_objects.role
$$;

comment on function idem_private.granted_objects(name) is
'What a role has been granted, by anybody: schemas, routines, tables, views and types, as GRANT names them.';

revoke all on function idem_private.granted_objects(name) from public;
