begin;
select plan(3);

set local idem.single_transaction = on;
create temp table first as select * from idem.reserve('shop', 'k', '\x01', mode => 'leased');
create temp table answer as select * from idem.reserve('shop', 'k', '\x01', mode => 'leased');

select results_eq(
    'select outcome, attempt, token, downstream_key, recovery_point, state, status, mismatched from answer',
    $$values (
        'in_progress', 1, null::uuid, null::uuid, null::text, null::jsonb, null::int, null::text[]
    )$$
);
select is(
    (idem.reserve('shop', 'k', '\x01')).outcome, 'in_progress', 'also to an atomic attempt'
);
set local idem.clock_offset = '59 seconds';
select is((idem.reserve('shop', 'k', '\x01')).outcome, 'in_progress', 'to the end of the lease');

select * from finish();
rollback;
