-- The owner of the functions is not asked.
begin;
select plan(2);

create role idem_stranger;
grant usage on schema idem to idem_stranger;
grant execute on function idem.enable_testing() to idem_stranger;
do $$ begin execute format('alter database %I owner to idem_stranger', current_database()); end $$;

create function pg_temp.enable_as(role name) returns void language plpgsql as $$
begin
    execute format('set local role %I', enable_as.role);
    perform idem.enable_testing();
    reset role;
end
$$;

select lives_ok($$select pg_temp.enable_as('idem_stranger')$$, 'the new owner');
select throws_ok(
    $$
        select pg_temp.enable_as(pg_get_userbyid(proowner))
        from pg_proc where oid = 'idem.enable_testing()'::regprocedure
    $$,
    '42501', null, 'not the old one'
);

select * from finish();
rollback;
