-- The extension makes its schema itself, so where it is installed, nobody else has made a schema cron for us to call.
create or replace function idem_private.cron_version() returns int[]
language sql stable as $$
    select string_to_array(substring(e.extversion from '^[0-9.]*[0-9]'), '.')::int[]
    from pg_catalog.pg_extension as e
    where e.extname = 'pg_cron'
$$;

comment on function idem_private.cron_version() is 'Version of pg_cron in this database, {1,4}; null: there is none.';

revoke all on function idem_private.cron_version() from public;
