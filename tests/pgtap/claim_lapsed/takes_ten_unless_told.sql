begin;
select plan(3);

set local idem.single_transaction = on;

select idem.reserve('shop', n || '', mode => 'leased') from generate_series(1, 15) as n;
set local idem.clock_offset = '1 hour';

select is(count(*), 10::bigint) from idem.claim_lapsed(null);
select is(count(*), 5::bigint) from idem.claim_lapsed();
select is(count(*), 0::bigint) from idem.claim_lapsed();

select * from finish();
rollback;
