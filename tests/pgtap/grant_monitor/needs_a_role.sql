begin;
select plan(1);

select throws_ok($$select idem.grant_monitor('idem_nobody')$$, '42704', null);

select * from finish();
rollback;
