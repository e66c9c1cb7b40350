begin;
select plan(1);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
update idem_private.reservation set recovery_point = 'charged';
select idem.release('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select results_eq(
    $$select outcome, attempt, lease_until from idem.reserve('shop', 'k')$$,
    $$values ('started', 2, null::timestamptz)$$
);

select * from finish();
rollback;
