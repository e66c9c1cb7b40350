create or replace function idem_private.refuse_without_citus() returns void
language plpgsql stable as $$
declare
    coordinator boolean;
begin
    if not exists (select from pg_catalog.pg_extension as e where e.extname = 'citus') then
        raise exception using
            errcode = '0A000',
            message = 'Citus is not installed in this database',
            detail = jsonb_build_object('code', 'no_citus')::text,
            hint = 'Run this on the coordinator of a Citus cluster; on a single server there is nothing to distribute.';
    end if;
    execute 'select pg_catalog.citus_is_coordinator()' into coordinator;
    if not coordinator then
        raise exception using
            errcode = '0A000',
            message = 'this is not the coordinator of the Citus cluster',
            detail = jsonb_build_object('code', 'not_the_coordinator')::text,
            hint = 'Run this on the coordinator, which creates what the workers need.';
    end if;
end
$$;

comment on function idem_private.refuse_without_citus() is 'Raises 0A000 anywhere but on the coordinator of a Citus cluster.';

revoke all on function idem_private.refuse_without_citus() from public;
