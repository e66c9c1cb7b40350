create or replace function idem_private.note_scopes_bound() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.renew_scopes_bound();
    return null;
end
$$;

comment on function idem_private.note_scopes_bound() is 'Keeps idem_private.policy.scopes_bound.';

revoke all on function idem_private.note_scopes_bound() from public;

create or replace trigger scope_binding_changed
after insert or delete or truncate on idem_private.scope_binding
for each statement execute function idem_private.note_scopes_bound();
