create or replace function idem.downstream_key(scope text, key text, step text default '') returns uuid
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    secret bytea;
begin
    perform idem_private.check_scope(downstream_key.scope);
    perform idem_private.check_key(downstream_key.scope, downstream_key.key, 1, 1024, '');
    select s.value into strict secret from idem_private.secret as s;
    return idem_private.derive_key(
        secret, downstream_key.scope, downstream_key.key, coalesce(downstream_key.step, '')
    );
end
$$;

comment on function idem.downstream_key(text, text, text) is
'The idempotency key to pass on to the next system: the same for every attempt at (scope, key, step), different in every installation, not guessable. Errors: IK001.';

revoke all on function idem.downstream_key(text, text, text) from public;
