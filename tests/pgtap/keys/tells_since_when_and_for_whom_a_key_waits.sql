begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased', lease => '1 minute');
set local idem.clock_offset = '1 hour';
select idem.claim_lapsed();
set local idem.clock_offset = '2 hours';

select results_eq(
    'select outcome, lapsed_at, unfinished, claims, max_claims from idem.keys',
    $$select 'lapsed', lease_until, true, 1, 10 from idem_private.reservation$$
);

select * from finish();
rollback;
