create or replace function idem.grant_client(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.grant_calls(
        grant_client.role,
        array[
            'reserve', 'complete', 'release', 'defer', 'extend', 'checkpoint', 'lookup', 'downstream_key', 'version',
            'run', 'run_begin', 'run_end', 'json_response', 'once', 'once_many', 'once_undo'
        ]
    );
end
$$;

comment on function idem.grant_client(name) is
'Lets a role make, finish and look up reservations: what an application needs, and nothing else.';

revoke all on function idem.grant_client(name) from public;
