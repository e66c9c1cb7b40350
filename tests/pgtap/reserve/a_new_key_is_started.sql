begin;
select plan(6);

create temp table answer as
select * from idem.reserve('shop', 'k', '\x01', state => '{"amount": 7}');

select results_eq(
    'select outcome, attempt, recovery_point, state, status, headers, body, mismatched, retry_after from answer',
    $$values (
        'started', 1, null::text, '{"amount": 7}'::jsonb, null::int, null::jsonb, null::bytea, null::text[],
        null::interval
    )$$,
    'started: the first attempt, with its state and without an answer'
);
select isnt((select token from answer), null, 'a token proves the ownership');
select is((select downstream_key from answer), idem.downstream_key('shop', 'k'), 'the downstream key of this key');
select ok(
    (select created_at between transaction_timestamp() and clock_timestamp() from answer), 'created by the real clock'
);
select is(
    (select expires_at - created_at from answer), interval '24 hours', 'the default policy keeps a key for 24 hours'
);
select results_eq(
    'select lease_until, completed_at from answer', 'values (null::timestamptz, null::timestamptz)',
    'an atomic reservation has no lease, and is not completed'
);

select * from finish();
rollback;
