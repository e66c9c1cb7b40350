begin;
select plan(4);

set local idem.single_transaction = on;
select idem.http_reserve('shop', 'k', 'POST', '/', mode => 'leased');
set local idem.clock_offset = '2 minutes';
select token from idem.claim_lapsed(scope => 'shop', key => 'k') \gset
select is(idem.http_complete('shop', 'k', :'token', 429), 'deferred');
select is(outcome, 'lapsed', 'the outcome is still unknown') from idem.lookup('shop', 'k');
select is(outcome, 'mismatch', 'and nobody may use the key for something else')
from idem.http_reserve('shop', 'k', 'POST', '/other', mode => 'leased');
select is(idem.release('shop', 'k', :'token'), true, 'who knows that nothing happened says so');

select * from finish();
rollback;
