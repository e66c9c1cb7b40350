create or replace function idem.enable_testing() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    owner_of_database name;
begin
    select pg_get_userbyid(d.datdba) into owner_of_database
    from pg_catalog.pg_database as d
    where d.datname = current_database();
    if not pg_has_role(idem_private.caller(), owner_of_database, 'MEMBER') then
        raise exception using
            errcode = '42501',
            message = 'only the owner of the database may enable testing',
            detail = jsonb_build_object('code', 'not_the_database_owner', 'owner', owner_of_database)::text,
            hint = 'Testing lets every session move its clock; it is meant for databases that hold nothing of value.';
    end if;
    insert into idem_private.testing (database, enabled_by)
    select d.oid, idem_private.caller()
    from pg_catalog.pg_database as d
    where d.datname = current_database()
    on conflict (database) do nothing;
end
$$;

comment on function idem.enable_testing() is
'Lets this database honour idem.clock_offset and idem.single_transaction, for test suites; only by its owner. Errors: 42501.';

revoke all on function idem.enable_testing() from public;
