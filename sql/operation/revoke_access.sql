create or replace function idem.revoke_access(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    object text;
    kept text[];
begin
    perform idem_private.check_role(revoke_access.role);
    if revoke_access.role collate "C" = current_user then
        raise exception using
            errcode = '22023',
            message = 'the owner keeps its access',
            detail = jsonb_build_object('code', 'role_is_the_owner', 'argument', 'role')::text,
            hint = 'Name the role that is to lose its access. To remove pyidem, run uninstall.sql.';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('pyidem.migrate', 0));
    for object in
        select granted.object from idem_private.granted_objects(revoke_access.role collate "C") as granted (object)
    loop
        execute format('revoke all on %s from %I cascade', object, revoke_access.role);
    end loop;
    delete from idem_private.access as a where a.role = quote_ident(revoke_access.role)::regrole;
    delete from idem_private.scope_binding as b where b.role = quote_ident(revoke_access.role)::regrole;
    if idem_private.is_distributed() then
        perform idem_private.renew_scopes_bound();
    end if;

    -- An owner's REVOKE leaves alone what somebody with grant option has given.
    select array_agg(granted.object order by granted.object) into kept
    from idem_private.granted_objects(revoke_access.role collate "C") as granted (object);
    if kept is not null then
        raise exception using
            errcode = '2BP01',
            message = format('role %I has access that another role has granted', revoke_access.role),
            detail = jsonb_build_object('code', 'granted_by_another', 'objects', kept)::text,
            hint = 'Nothing was revoked. First revoke the access of the role that granted it.';
    end if;
end
$$;

comment on function idem.revoke_access(name) is
'Takes from a role all access to both schemas, whoever of the owner''s granted it and how, and its bindings, so that it can be dropped. Errors: 22023, 25001, 2BP01, 42704.';

revoke all on function idem.revoke_access(name) from public;
