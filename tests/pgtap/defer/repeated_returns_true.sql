begin;
select plan(2);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as select * from idem.lookup('shop', 'k');

set local idem.clock_offset = '1 minute';
select is(idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), true);
select results_eq($$select * from idem.lookup('shop', 'k')$$, 'table before', 'it stays lapsed since the first time');

select * from finish();
rollback;
