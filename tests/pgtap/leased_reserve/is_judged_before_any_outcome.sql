-- The transaction has written: pgTAP writes.
begin;
select plan(3);

select idem.complete('shop', 'done', token) from idem.reserve('shop', 'done', '\x01');

select throws_ok($$select idem.reserve('shop', 'done', '\x01', 'leased')$$, 'IK004', null, 'a completed key');
select throws_ok($$select idem.reserve('shop', 'done', '\x02', 'leased')$$, 'IK004', null, 'a mismatch');
select is((idem.reserve('shop', 'done', '\x01')).outcome, 'replay', 'which an atomic attempt gets');

select * from finish();
rollback;
