-- I7
begin;
select plan(2);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
set local idem.clock_offset = '400 days';
select is(idem_private.purge_events(10), 0::bigint, 'the outcome is unknown');
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select is(idem_private.purge_events(10), 1::bigint, 'it is known now');

select * from finish();
rollback;
