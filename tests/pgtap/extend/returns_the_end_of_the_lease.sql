begin;
select plan(1);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(
    idem.extend('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', '1 hour'),
    (idem.lookup('shop', 'k')).lease_until
);

select * from finish();
rollback;
