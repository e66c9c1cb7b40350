begin;
select plan(2);

create role idem_watch;
create role idem_app;
select idem.grant_monitor('idem_watch'), idem.grant_client('idem_app');
set local role idem_watch;
select is((select count(*) from idem.purge_state()), bigint '1', 'one row');
set local role idem_app;
select throws_ok('select * from idem.purge_state()', '42501', null, 'not for clients');

reset role;
select * from finish();
rollback;
