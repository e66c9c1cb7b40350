-- I7
begin;
select plan(1);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set local idem.clock_offset = '10 years';
select is((idem.reserve('shop', 'k', mode => 'leased')).outcome, 'unresolved');

select * from finish();
rollback;
