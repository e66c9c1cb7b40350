begin;
select plan(4);

create role idem_watch;
create role idem_app;
select idem.grant_monitor('idem_watch'), idem.grant_client('idem_app');
set local role idem_watch;
select lives_ok('select * from idem.health()');
select lives_ok('select * from idem.stats()');
set local role idem_app;
select throws_ok('select * from idem.health()', '42501', null);
select throws_ok('select * from idem.stats()', '42501', null);
reset role;

select * from finish();
rollback;
