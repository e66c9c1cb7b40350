create or replace function idem_private.check_role(role name) returns void
language plpgsql stable as $$
begin
    if not exists (select from pg_catalog.pg_roles as r where r.rolname = check_role.role collate "C") then
        raise exception using
            errcode = '42704',
            message = format('there is no role %s', coalesce(quote_ident(check_role.role), 'null')),
            detail = jsonb_build_object('code', 'no_such_role', 'role', check_role.role)::text,
            hint = 'Roles are made by the administrator of the server: CREATE ROLE.';
    end if;
end
$$;

comment on function idem_private.check_role(name) is 'Raises 42704 where there is no such role.';

revoke all on function idem_private.check_role(name) from public;
