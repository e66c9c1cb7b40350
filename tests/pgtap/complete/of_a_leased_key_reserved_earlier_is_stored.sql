-- As if an earlier transaction had reserved it, also one with the same id on the server that this database comes from.
begin;
select plan(2);

set local idem.single_transaction = on;
select idem.reserve('shop', 'other', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('shop', 'same id', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
set local idem.single_transaction = off;
update idem_private.reservation set owner_xid = '3' where key = 'other';
update idem_private.reservation set owned_at = transaction_timestamp() - interval '1 second' where key = 'same id';

select is(idem.complete('shop', 'other', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201), true, 'another transaction');
select is(idem.complete('shop', 'same id', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201), true, 'another server');

select * from finish();
rollback;
