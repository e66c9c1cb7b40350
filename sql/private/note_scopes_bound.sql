-- Whoever writes a policy meanwhile waits, and then reads the bindings of now: see idem_private.check_policy.
create or replace function idem_private.note_scopes_bound() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    bound boolean;
begin
    lock table idem_private.policy in share row exclusive mode;
    bound := exists (select from idem_private.scope_binding);
    update idem_private.policy as p set scopes_bound = bound where p.scopes_bound <> bound;
    return null;
end
$$;

comment on function idem_private.note_scopes_bound() is 'Keeps idem_private.policy.scopes_bound.';

revoke all on function idem_private.note_scopes_bound() from public;

create or replace trigger scope_binding_changed
after insert or delete or truncate on idem_private.scope_binding
for each statement execute function idem_private.note_scopes_bound();
