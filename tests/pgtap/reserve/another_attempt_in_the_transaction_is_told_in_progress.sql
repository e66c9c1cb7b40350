begin;
select plan(2);

select idem.reserve('shop', 'k', '\x01', state => '{"amount": 7}');

select results_eq(
    $$
        select outcome, token, downstream_key, recovery_point, state, status, headers, body, mismatched, completed_at
        from idem.reserve('shop', 'k', '\x01')
    $$,
    $$values (
        'in_progress', null::uuid, null::uuid, null::text, null::jsonb, null::int, null::jsonb, null::bytea,
        null::text[], null::timestamptz
    )$$,
    'without a token it is another attempt'
);
select is(
    (idem.reserve('shop', 'k', '\x01', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb')).outcome, 'in_progress',
    'and with another token'
);

select * from finish();
rollback;
