-- An atomic reservation that was completed, has expired and is leased anew by its own transaction is nobody's debt.
begin;
select plan(1);

set local idem.single_transaction = on;
select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');
set local idem.clock_offset = '24 hours';
select idem.reserve('shop', 'k', mode => 'leased');

select lives_ok('set constraints all immediate');

select * from finish();
rollback;
