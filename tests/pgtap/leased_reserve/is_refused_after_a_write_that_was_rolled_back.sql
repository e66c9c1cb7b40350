-- No plan before the calls under test: pgTAP writes.
begin;
savepoint before;
create temp table purchase (id int);
rollback to savepoint before;
do $$
begin
    perform idem.reserve('shop', 'k', mode => 'leased');
exception when others then
    perform set_config('test.sqlstate', sqlstate, true);
end
$$;
select plan(1);

select is(current_setting('test.sqlstate', true), 'IK004');

select * from finish();
rollback;
