create or replace function idem_private.testing_enabled() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select exists (
        select from idem_private.testing as t
        inner join pg_catalog.pg_database as d on t.database = d.oid
        where d.datname = current_database()
    )
$$;

comment on function idem_private.testing_enabled() is
'Whether this very database honours the settings for test suites.';

revoke all on function idem_private.testing_enabled() from public;
