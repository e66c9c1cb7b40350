-- Whoever writes a policy meanwhile waits, and then reads the bindings of now: see idem_private.check_policy. An old
-- snapshot would leave out policies and bindings that were committed since.
create or replace function idem_private.renew_scopes_bound() returns void
language plpgsql volatile as $$
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
end
$$;

comment on function idem_private.renew_scopes_bound() is 'Makes idem_private.policy.scopes_bound true to idem_private.scope_binding.';

revoke all on function idem_private.renew_scopes_bound() from public;
