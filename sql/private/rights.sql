-- The one place that says which grant gives what. A new function, procedure or view of schema idem is one line here:
-- its name, the privileges, and the grants that give them; none for what is the owner's alone. A helper that a public
-- view calls is one too. Roles that hold a grant get what was added at the end of an upgrade: see renew_access.
create or replace function idem_private.rights() returns table (object text, privileges text, given_by text[])
language sql immutable as $$
    select r.object, r.privileges, string_to_array(r.given_by, ', ')
    from (values
        ('idem.reserve', 'execute', 'client, operator'),
        ('idem.complete', 'execute', 'client, resolver, operator'),
        ('idem.release', 'execute', 'client, resolver, operator'),
        ('idem.defer', 'execute', 'client, resolver, operator'),
        ('idem.extend', 'execute', 'client, resolver, operator'),
        ('idem.checkpoint', 'execute', 'client, resolver, operator'),
        ('idem.lookup', 'execute', 'client, resolver, operator'),
        ('idem.downstream_key', 'execute', 'client, resolver, operator'),
        ('idem.run', 'execute', 'client, operator'),
        ('idem.json_response', 'execute', 'client, operator'),
        ('idem.run_begin', 'execute', 'client, operator'),
        ('idem.run_end', 'execute', 'client, operator'),
        ('idem.once', 'execute', 'client, operator'),
        ('idem.once_many', 'execute', 'client, operator'),
        ('idem.once_undo', 'execute', 'client, operator'),
        ('idem.fingerprint', 'execute', 'client, operator'),
        ('idem.fingerprint_fields', 'execute', 'client, operator'),
        ('idem.http_reserve', 'execute', 'client, operator'),
        ('idem.http_complete', 'execute', 'client, resolver, operator'),
        ('idem.policy_document', 'execute', 'client, operator'),
        ('idem.version', 'execute', 'client, resolver, monitor, operator'),
        ('idem.health', 'execute', 'monitor, operator'),
        ('idem.stats', 'execute', 'monitor, operator'),
        ('idem.purge_state', 'execute', 'monitor, operator'),
        ('idem.claim_lapsed', 'execute', 'resolver, operator'),
        ('idem.resolve', 'execute', 'operator'),
        ('idem.history', 'execute', 'operator'),
        ('idem.purge', 'execute', 'operator'),
        ('idem.purge_all', 'execute', 'operator'),
        ('idem.schedule', 'execute', 'operator'),
        ('idem.unschedule', 'execute', 'operator'),
        ('idem.forget', 'execute', 'operator'),
        ('idem.policies', 'select, insert, update, delete', 'operator'),
        ('idem.grant_client', 'execute', ''),
        ('idem.grant_resolver', 'execute', ''),
        ('idem.grant_monitor', 'execute', ''),
        ('idem.grant_operator', 'execute', ''),
        ('idem.revoke_access', 'execute', ''),
        ('idem.bind_scope', 'execute', ''),
        ('idem.unbind_scope', 'execute', ''),
        ('idem.enable_testing', 'execute', ''),
        ('idem.disable_testing', 'execute', ''),
        ('idem.distribute', 'execute', 'operator'),
        ('idem.keys', 'select', 'monitor, operator'),
        ('idem_private.reader', 'execute', 'monitor, operator'),
        ('idem_private.is_within', 'execute', 'monitor, operator')
    ) as r (object, privileges, given_by)
$$;

comment on function idem_private.rights() is
'Which grant (client, resolver, monitor, operator) gives which privileges on which object.';

revoke all on function idem_private.rights() from public;
