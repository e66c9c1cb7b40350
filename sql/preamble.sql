-- What an installation and every migration run first inside their transaction: settings, one migrator at a time, and
-- the schema that holds the version table, which Alembic needs before its first revision.

-- Under a stricter level the snapshot would be older than the lock below, and the loser of a race would install again.
set transaction isolation level read committed;
set local search_path = pg_catalog, pg_temp;

-- Waiting for another migrator blocks nobody; waiting for a table lock holds up everyone behind it.
set local lock_timeout = '1min';
do $$ begin perform pg_advisory_xact_lock(hashtextextended('pyidem.migrate', 0)); end $$;
set local lock_timeout = '5s';

do $$
declare
    owner name := (
        select r.rolname
        from pg_namespace as n
        join pg_roles as r on r.oid = n.nspowner
        where n.nspname = 'idem_private'
    );
    grantee text;
begin
    -- Objects of two owners would mix the rights of SECURITY DEFINER functions, and a schema prepared by somebody else
    -- would hand them over.
    if owner <> current_user then
        raise insufficient_privilege using
            message = format('schema idem_private belongs to role %I, not to %I', owner, current_user),
            hint = format('Connect as %1$I, or take its role: PGOPTIONS=''-c role=%1$I''.', owner);
    end if;

    if (owner is null or to_regnamespace('idem') is null) and not has_database_privilege(current_database(), 'CREATE') then
        raise insufficient_privilege using
            message = format('role %I may not create schemas in database %I', current_user, current_database()),
            hint = format('Its owner must run: grant create on database %I to %I;', current_database(), current_user);
    end if;

    if owner is null then
        create schema idem_private;
        comment on schema idem_private is 'pyidem: tables, helpers and the version table. Not an interface: nobody gets USAGE.';

        -- Default privileges may have granted it to others.
        for grantee in
            select case a.grantee when 0 then 'public' else a.grantee::regrole::text end
            from pg_namespace as n, aclexplode(n.nspacl) as a
            where n.nspname = 'idem_private' and a.grantee <> n.nspowner
        loop
            execute format('revoke all on schema idem_private from %s', grantee);
        end loop;
    end if;
end
$$;
