create or replace function idem.unbind_scope(role name, prefix text default null) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform idem_private.check_role(unbind_scope.role);
    delete from idem_private.scope_binding as b
    where b.role = quote_ident(unbind_scope.role)::regrole
        and (unbind_scope.prefix is null or b.prefix = unbind_scope.prefix collate "C");
    if idem_private.is_distributed() then
        perform idem_private.renew_scopes_bound();
    end if;
end
$$;

comment on function idem.unbind_scope(name, text) is
'Takes back a binding of idem.bind_scope, or all bindings of a role; one that has none left may name any scope. Errors: 25001, 42704.';

revoke all on function idem.unbind_scope(name, text) from public;
