create or replace function idem.disable_testing() returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    delete from idem_private.testing
$$;

comment on function idem.disable_testing() is
'Ends what idem.enable_testing began.';

revoke all on function idem.disable_testing() from public;
