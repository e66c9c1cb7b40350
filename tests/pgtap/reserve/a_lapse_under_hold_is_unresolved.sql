begin;
select plan(4);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', '\x01', 'leased', state => '1', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as table idem_private.reservation;

set local idem.clock_offset = '1 minute';
select results_eq(
    $$
        select outcome, attempt, token, downstream_key, recovery_point, state, status, mismatched, retry_after
        from idem.reserve('shop', 'k', '\x01', 'leased')
    $$,
    $$values (
        'unresolved', 1, null::uuid, null::uuid, null::text, null::jsonb, null::int, null::text[], interval '1 second'
    )$$,
    'at the end of the lease'
);
set local idem.clock_offset = '10 years';
select is((idem.reserve('shop', 'k', '\x01', 'leased')).outcome, 'unresolved', 'and ever after');
select is((idem.reserve('shop', 'k', '\x01')).outcome, 'unresolved', 'in either mode');
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');

select * from finish();
rollback;
