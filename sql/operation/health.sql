-- A check that is not red needs no fix, but where it cannot tell, it says what would let it.
create or replace function idem.health() returns table (check_name text, ok boolean, detail text, fix text)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select h.check_name, h.ok, h.detail, case when h.ok then null else h.fix end
    from (
        select * from idem_private.health_of_installation()
        union all
        select * from idem_private.health_of_guards()
        union all
        select * from idem_private.health_of_settings()
        union all
        select * from idem_private.health_of_keys()
        union all
        select * from idem_private.health_of_purge()
        union all
        select * from idem_private.health_of_job()
        union all
        select * from idem_private.health_of_server()
    ) as h
$$;

comment on function idem.health() is
'Checks of this installation, each with what to do where it fails: ok is false where something is wrong, null where that cannot be told from here. Changes nothing, and works on a standby.';

revoke all on function idem.health() from public;
