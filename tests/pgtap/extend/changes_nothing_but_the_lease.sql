begin;
select plan(1);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as select to_jsonb(r) - 'lease_until' from idem_private.reservation as r;
select idem.extend('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', '1 hour');

select results_eq($$select to_jsonb(r) - 'lease_until' from idem_private.reservation as r$$, 'table before');

select * from finish();
rollback;
