begin;
select plan(4);

create role idem_stranger;
grant usage on schema idem to idem_stranger;
grant execute on function idem.enable_testing() to idem_stranger;
select idem.disable_testing();

create function pg_temp.enable_as(role name) returns void language plpgsql as $$
begin
    execute format('set local role %I', enable_as.role);
    perform idem.enable_testing();
    reset role;
end
$$;

select throws_ok($$select pg_temp.enable_as('idem_stranger')$$, '42501', null, 'not for others');
set local idem.clock_offset = '25 hours';
select ok(
    (select created_at < clock_timestamp() + interval '1 hour' from idem.reserve('shop', 'k')), 'nothing is enabled'
);
select lives_ok(
    $$select pg_temp.enable_as(pg_get_userbyid(datdba)) from pg_database where datname = current_database()$$,
    'for the owner'
);
select ok((select created_at > clock_timestamp() + interval '1 hour' from idem.reserve('shop', 'l')), 'it is enabled');

select * from finish();
rollback;
