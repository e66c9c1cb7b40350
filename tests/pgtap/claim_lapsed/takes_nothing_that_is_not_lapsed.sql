begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve('shop', 'alive', mode => 'leased', lease => '1 hour');
select idem.reserve('shop', 'atomic');
select idem.complete('shop', 'completed', token) from idem.reserve('shop', 'completed', mode => 'leased');
select idem.checkpoint('shop', 'released', token, 'half'), idem.release('shop', 'released', token)
from idem.reserve('shop', 'released', mode => 'leased', lease => '1 second');
select idem.once('shop', 'mark');
set local idem.clock_offset = '2 minutes';

select is_empty('select * from idem.claim_lapsed()');

select * from finish();
rollback;
