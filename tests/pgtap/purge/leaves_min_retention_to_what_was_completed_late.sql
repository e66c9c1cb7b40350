begin;
select plan(4);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
set local idem.clock_offset = '30 hours';
select is(idem.purge(), 0::bigint, 'unfinished, long after its retention');
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201);
set local idem.clock_offset = '30 hours 59 minutes';
select is(idem.purge(), 0::bigint, 'an hour is not over');
select is((idem.reserve('shop', 'k')).status, 201, 'and the answer is there');
set local idem.clock_offset = '31 hours 1 minute';
select is(idem.purge(), 1::bigint, 'then it goes');

select * from finish();
rollback;
