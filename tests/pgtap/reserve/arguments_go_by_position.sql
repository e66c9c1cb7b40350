begin;
select plan(1);

set local idem.single_transaction = on;

select results_eq(
    $$
        select outcome, token, state, lease_until - created_at
        from idem.reserve(
            'shop', 'k', '\x01', 'leased', '5 minutes', '{"/amount": "h"}', '{"step": 1}',
            'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'messages'
        )
    $$,
    $$values (
        'started', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'::uuid, '{"step": 1}'::jsonb, interval '5 minutes'
    )$$
);

select * from finish();
rollback;
