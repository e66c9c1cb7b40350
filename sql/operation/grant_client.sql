create or replace function idem.grant_client(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.give_access(grant_client.role, 'client');
end
$$;

comment on function idem.grant_client(name) is
'Lets a role make, finish and look up reservations: what an application needs, and nothing else. Errors: 42704.';

revoke all on function idem.grant_client(name) from public;
