begin;
select plan(1);

set local idem.single_transaction = on;

select idem.release('shop', 'k', token) from idem.reserve('shop', 'k', mode => 'leased');
set local idem.clock_offset = '1 hour';
select idem.complete('shop', 'k', token, 204) from idem.reserve('shop', 'k', mode => 'leased');

select results_eq(
    $$select event, attempt, detail from idem.history('shop', 'k')$$,
    $$values
        ('reserved', 1, null), ('released', 1, null),
        ('reserved', 1, '{"policy": "default"}'::jsonb), ('completed', 1, '{"status": 204}')
    $$
);

select * from finish();
rollback;
