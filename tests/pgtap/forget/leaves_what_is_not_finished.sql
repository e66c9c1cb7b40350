begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'lapsed', mode => 'leased', policy => 'again');
select idem.checkpoint('shop', 'released', token, 'charged'), idem.release('shop', 'released', token)
from idem.reserve('shop', 'released', mode => 'leased');
set local idem.clock_offset = '2 minutes';
select idem.reserve('shop', 'lapsed', mode => 'leased');
set local idem.clock_offset = '900 days';
create temp table before as select * from idem.keys;
create temp table history as select * from idem.history('shop', 'lapsed');

select is(idem.forget('shop'), 0::bigint);
select is(idem.forget('shop', 'lapsed'), 0::bigint);
select bag_eq('select * from idem.keys', 'select * from before');
select isnt_empty('select * from history');
select bag_eq($$select * from idem.history('shop', 'lapsed')$$, 'select * from history', 'with what happened to it');

select * from finish();
rollback;
