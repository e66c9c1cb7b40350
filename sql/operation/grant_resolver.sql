create or replace function idem.grant_resolver(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.grant_calls(
        grant_resolver.role,
        array[
            'claim_lapsed', 'complete', 'http_complete', 'release', 'defer', 'extend', 'checkpoint', 'lookup',
            'downstream_key', 'version'
        ]
    );
end
$$;

comment on function idem.grant_resolver(name) is
'Lets a role claim lapsed keys and end them: what a sweeper needs, and nothing else.';

revoke all on function idem.grant_resolver(name) from public;
