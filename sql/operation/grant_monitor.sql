create or replace function idem.grant_monitor(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.give_access(grant_monitor.role, 'monitor');
end
$$;

comment on function idem.grant_monitor(name) is
'Lets a role see how pyidem and its keys stand, and change nothing. Errors: 42704.';

revoke all on function idem.grant_monitor(name) from public;
