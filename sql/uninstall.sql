-- Removes pyidem with all its keys:
--
--     psql -X -q -f sql/uninstall.sql
--
-- Only while nothing of others depends on it; otherwise it names what does (SQLSTATE 2BP01) and changes nothing.
\set ON_ERROR_STOP on

begin;

set local search_path = pg_catalog, pg_temp;
set local lock_timeout = '1min';
do $$ begin perform pg_advisory_xact_lock(hashtextextended('pyidem.migrate', 0)); end $$;
set local lock_timeout = '5s';

do $$
declare
    dependents text;
begin
    if to_regclass('idem_private.alembic_version') is null then
        raise notice 'pyidem is not installed';
        return;
    end if;

    with recursive contained as (
        -- The role that installed owns the schemas and all that it made in them. Owners stand in pg_shdepend, except
        -- for the bootstrap superuser, whose oid is 10. The members of an extension stand and fall with it.
        select d.classid, d.objid, coalesce(o.refobjid, 10) = n.nspowner and d.classid <> 'pg_extension'::regclass as ours
        from pg_namespace as n
        join pg_depend as d on d.refclassid = 'pg_namespace'::regclass and d.refobjid = n.oid and d.deptype = 'n'
        left join pg_shdepend as o
            on o.dbid = (select b.oid from pg_database as b where b.datname = current_database())
            and o.classid = d.classid and o.objid = d.objid and o.objsubid = 0 and o.deptype = 'o'
        where n.nspname in ('idem', 'idem_private') and not exists (
            select from pg_depend as e where e.classid = d.classid and e.objid = d.objid and e.deptype = 'e'
        )
    ),

    -- Row types, indexes, defaults, rules and the like are parts of what is ours; a trigger is one if it calls a
    -- function of ours.
    ours as (
        select c.classid, c.objid from contained as c where c.ours
        union
        select d.classid, d.objid
        from ours as o
        join pg_depend as d on d.refclassid = o.classid and d.refobjid = o.objid and d.deptype in ('a', 'i')
        left join pg_trigger as t on d.classid = 'pg_trigger'::regclass and t.oid = d.objid and not t.tgisinternal
        where t.oid is null or t.tgfoid in (
            select c.objid from contained as c where c.ours and c.classid = 'pg_proc'::regclass
        )
    ),

    of_others as (
        select c.classid, c.objid, 0 as objsubid from contained as c where not c.ours
        union
        select d.classid, d.objid, d.objsubid
        from ours as o
        join pg_depend as d on d.refclassid = o.classid and d.refobjid = o.objid
        where (d.classid, d.objid) not in (select x.classid, x.objid from ours as x)
    ),

    -- A view depends through its rule.
    named as (
        select
            case
                when r.oid is null then pg_describe_object(f.classid, f.objid, f.objsubid)
                else pg_describe_object('pg_class'::regclass, r.ev_class, 0)
            end as name
        from of_others as f
        left join pg_rewrite as r on f.classid = 'pg_rewrite'::regclass and r.oid = f.objid
    )

    select string_agg(distinct n.name, e'\n') into dependents from named as n;

    if dependents is not null then
        raise dependent_objects_still_exist using
            message = 'pyidem cannot be removed: objects of others depend on it',
            detail = dependents,
            hint = 'Drop or change these objects first.';
    end if;

    set local client_min_messages = warning;
    if to_regprocedure('idem.unschedule()') is not null then
        execute 'select idem.unschedule()';
    end if;
    drop schema if exists idem, idem_private cascade;
end
$$;

commit;
