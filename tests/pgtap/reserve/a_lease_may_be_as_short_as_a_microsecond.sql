begin;
select plan(1);

set local idem.single_transaction = on;

select is(
    (select lease_until - created_at from idem.reserve('shop', 'k', mode => 'leased', lease => '1 microsecond')),
    interval '1 microsecond'
);

select * from finish();
rollback;
