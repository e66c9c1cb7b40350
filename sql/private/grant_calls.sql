create or replace function idem_private.grant_calls(role name, calls text[]) returns void
language plpgsql volatile as $$
declare
    call regprocedure;
begin
    if not exists (select from pg_catalog.pg_roles as r where r.rolname = grant_calls.role) then
        raise exception using
            errcode = '42704',
            message = format('there is no role %s', coalesce(quote_ident(grant_calls.role), 'null')),
            detail = jsonb_build_object('code', 'no_such_role', 'role', grant_calls.role)::text,
            hint = 'Roles are made by the administrator of the server: CREATE ROLE.';
    end if;
    execute format('grant usage on schema idem to %I', grant_calls.role);
    for call in
        select p.oid::regprocedure
        from pg_catalog.pg_proc as p
        where p.pronamespace = 'idem'::regnamespace and p.proname = any(grant_calls.calls)
        order by p.proname
    loop
        execute format('grant execute on function %s to %I', call, grant_calls.role);
    end loop;
end
$$;

comment on function idem_private.grant_calls(name, text[]) is 'Lets a role use the schema idem and call these functions.';

revoke all on function idem_private.grant_calls(name, text[]) from public;
