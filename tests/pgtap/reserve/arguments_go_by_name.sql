begin;
select plan(1);

set local idem.single_transaction = on;

select results_eq(
    $$
        select outcome, token, state, lease_until - created_at
        from idem.reserve(
            scope => 'shop', key => 'k', fingerprint => '\x01', mode => 'leased', lease => '5 minutes',
            fields => '{"/amount": "h"}', state => '{"step": 1}', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
            policy => 'messages'
        )
    $$,
    $$values (
        'started', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'::uuid, '{"step": 1}'::jsonb, interval '5 minutes'
    )$$
);

select * from finish();
rollback;
