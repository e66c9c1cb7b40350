-- No plan before the calls under test: pgTAP writes.
begin;
create temp table purchase (id int);
do $$
begin
    perform idem.reserve('shop', 'k', mode => 'leased');
exception when others then
    perform set_config('test.sqlstate', sqlstate, true);
end
$$;
select plan(2);

select is(current_setting('test.sqlstate', true), 'IK004');
select is_empty('table idem_private.reservation', 'nothing is stored');

select * from finish();
rollback;
