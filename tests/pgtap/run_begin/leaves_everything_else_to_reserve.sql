-- False for whatever is stored, in every state, and for a key that cannot be; nothing changes.
begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, tombstone) values ('kept', '1 day');
select idem.reserve('shop', 'atomic', '\x01');
select idem.reserve('shop', 'live', '\x01', 'leased', '2 days');
select idem.reserve('shop', 'lapsed', '\x01', 'leased');
select idem.complete('shop', 'completed', token, 200) from idem.reserve('shop', 'completed', '\x01', policy => 'messages');
select idem.complete('shop', 'expired', token, 200) from idem.reserve('shop', 'expired', '\x01');
select idem.complete('shop', 'tombstone', token, 200) from idem.reserve('shop', 'tombstone', '\x01', policy => 'kept');
select idem.once('shop', 'marked');

set local idem.clock_offset = '25 hours';
create temp table before as table idem_private.reservation;
select set_eq($$select idem.run_begin('shop', key) from before$$, array[false], 'of whatever is stored');
select is((select count(*) from before), 7::bigint, 'in every state');
select set_eq('table idem_private.reservation', 'table before', 'nothing has changed');
select is(idem.run_begin(null, 'k'), false, 'no scope');
select is(idem.run_begin('shop', null), false, 'no key');

select * from finish();
rollback;
