begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', '\x01', 'leased', '1 minute', state => '1', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '2');
create temp table lease as select lease_until, created_at from idem.lookup('shop', 'k');
set local idem.clock_offset = '2 minutes';

select results_eq(
    $$
        select scope, key, attempt, downstream_key, recovery_point, state, policy, created_at, lapsed_at, claims, reason
        from idem.claim_lapsed()
    $$,
    $$
        select
            'shop', 'k', 1, idem.downstream_key('shop', 'k'), 'charged', '2'::jsonb, 'default', created_at, lease_until,
            1, null::text
        from lease
    $$
);

select * from finish();
rollback;
