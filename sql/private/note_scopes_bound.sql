-- Whoever writes a policy meanwhile waits, and then reads the bindings of now: see idem_private.check_policy. An old
-- snapshot would leave out policies and bindings that were committed since.
create or replace function idem_private.note_scopes_bound() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    bound boolean;
begin
    lock table idem_private.policy in share row exclusive mode;
    bound := exists (select from idem_private.scope_binding);
    if current_setting('transaction_isolation') <> 'read committed'
        and (bound or exists (select from idem_private.policy as p where p.scopes_bound)) then
        raise exception using
            errcode = '25001',
            message = 'roles are bound to scopes in READ COMMITTED only',
            detail = jsonb_build_object('code', 'needs_read_committed')::text,
            hint = 'Begin a transaction with ISOLATION LEVEL READ COMMITTED.';
    end if;
    update idem_private.policy as p set scopes_bound = bound where p.scopes_bound <> bound;
    return null;
end
$$;

comment on function idem_private.note_scopes_bound() is 'Keeps idem_private.policy.scopes_bound.';

revoke all on function idem_private.note_scopes_bound() from public;

create or replace trigger scope_binding_changed
after insert or delete or truncate on idem_private.scope_binding
for each statement execute function idem_private.note_scopes_bound();
