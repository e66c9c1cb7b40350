begin;
select plan(1);

select throws_ok($$select idem.grant_operator('idem_nobody')$$, '42704', null);

select * from finish();
rollback;
