begin;
select plan(1);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', lease => '1 minute');
set local idem.clock_offset = '1 hour';
select idem.complete(scope, key, token) from idem.claim_lapsed();

select results_eq(
    $$
        select h.event, date_trunc('minute', h.at - l.created_at)
        from idem.history('shop', 'k') as h, idem.lookup('shop', 'k') as l
    $$,
    $$values
        ('reserved', interval '0'), ('lapsed', '1 minute'), ('claimed', '1 hour'), ('completed', '1 hour')
    $$
);

select * from finish();
rollback;
