begin;
select plan(2);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased');
set local idem.single_transaction = off;
set local idem.clock_offset = '2 minutes';

select ok(idem.complete(scope, key, token, 201)) from idem.claim_lapsed();
select is((idem.lookup('shop', 'k')).status, 201);

select * from finish();
rollback;
