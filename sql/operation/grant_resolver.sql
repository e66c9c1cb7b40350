create or replace function idem.grant_resolver(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.give_access(grant_resolver.role, 'resolver');
end
$$;

comment on function idem.grant_resolver(name) is
'Lets a role claim lapsed keys and end them: what a sweeper needs, and nothing else. Errors: 42704.';

revoke all on function idem.grant_resolver(name) from public;
