create or replace function idem.version() returns text
language sql immutable security definer set search_path = pg_catalog, pg_temp as $$
    select '0.1.0'::text
$$;

comment on function idem.version() is 'Version of pyidem that is installed in this database.';

revoke all on function idem.version() from public;
