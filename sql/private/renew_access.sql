create or replace function idem_private.renew_access() returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select idem_private.give_access(r.rolname, a.given)
    from idem_private.access as a
    inner join pg_catalog.pg_roles as r on a.role = r.oid;
$$;

comment on function idem_private.renew_access() is
'Gives every role that holds a grant what an upgrade has added to it; at the end of every migration.';

revoke all on function idem_private.renew_access() from public;
