create or replace function idem.bind_scope(role name, prefix text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    max_length constant int := 255;
begin
    perform idem_private.check_role(bind_scope.role);
    if coalesce(length(bind_scope.prefix), 0) not between 1 and max_length
        or bind_scope.prefix collate "C" ~ '^\s+$' or bind_scope.prefix collate "C" ~ '[\x01-\x1f\x7f-\x9f]' then
        raise exception using
            errcode = '22023',
            message = 'prefix must be what a scope can begin with',
            detail = jsonb_build_object(
                'code', 'prefix_unfit', 'argument', 'prefix', 'limit', max_length
            )::text,
            hint = 'A scope is 1 to 255 characters, any but control characters, and not blank.';
    end if;
    insert into idem_private.scope_binding (role, prefix)
    values (quote_ident(bind_scope.role)::regrole, bind_scope.prefix)
    on conflict do nothing;
    if idem_private.is_distributed() then
        perform idem_private.renew_scopes_bound();
    end if;
end
$$;

comment on function idem.bind_scope(name, text) is
'From now on a role names only scopes that equal the prefix or continue it, here and wherever else it is bound. Errors: 22023, 25001, 42704.';

revoke all on function idem.bind_scope(name, text) from public;
