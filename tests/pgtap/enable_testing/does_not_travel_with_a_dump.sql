-- A restored database is another one, with another oid.
begin;
select plan(2);

update idem_private.testing set database = '1';
set local idem.clock_offset = '25 hours';
set local idem.single_transaction = on;

select ok((select created_at < clock_timestamp() from idem.reserve('shop', 'k')), 'the clock does not move');
select throws_ok($$select idem.reserve('shop', 'l', mode => 'leased')$$, 'IK004', null, 'leased mode is as ever');

select * from finish();
rollback;
