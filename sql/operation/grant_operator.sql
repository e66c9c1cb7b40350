create or replace function idem.grant_operator(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.give_access(grant_operator.role, 'operator');
end
$$;

comment on function idem.grant_operator(name) is
'Lets a role call and change everything but rights and testing: for whoever runs pyidem from day to day. Errors: 42704.';

revoke all on function idem.grant_operator(name) from public;
