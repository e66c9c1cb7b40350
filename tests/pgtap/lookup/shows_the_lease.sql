begin;
select plan(1);

set local idem.single_transaction = on;
create temp table first as select * from idem.reserve('shop', 'k', mode => 'leased');

select results_eq(
    $$select outcome, attempt, created_at, lease_until, completed_at from idem.lookup('shop', 'k')$$,
    $$select 'in_progress', 1, created_at, lease_until, null::timestamptz from first$$
);

select * from finish();
rollback;
