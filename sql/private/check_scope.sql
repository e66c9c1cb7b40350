-- First in every public function that takes a scope. A null scope is nobody's; other checks refuse it.
create or replace function idem_private.check_scope(scope text) returns void
language plpgsql stable as $$
begin
    if not exists (select from idem_private.scope_binding) then
        return;
    end if;
    if check_scope.scope is not null
        and not idem_private.is_within(check_scope.scope, idem_private.bound_prefixes()) then
        raise exception using
            errcode = '42501',
            message = 'this role may not use this scope',
            detail = jsonb_build_object('code', 'scope_not_allowed', 'argument', 'scope')::text,
            hint = 'It is bound to other scopes, by itself or as a member of another role: see idem.bind_scope.';
    end if;
end
$$;

comment on function idem_private.check_scope(text) is
'Raises 42501 where the session is bound to other scopes; costs one look at an empty table while no role is bound.';

revoke all on function idem_private.check_scope(text) from public;
