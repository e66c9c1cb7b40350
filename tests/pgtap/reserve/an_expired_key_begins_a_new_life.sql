begin;
select plan(7);

set local idem.single_transaction = on;
insert into idem.policies (name, ttl) values ('long', '100 hours');
create temp table first as
select * from idem.reserve(
    'shop', 'k', '\x01', fields => '{"/a": "h1"}', state => '1', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200, '[]', 'x');

set local idem.clock_offset = '24 hours';
create temp table second as
select * from idem.reserve(
    'shop', 'k', '\x02', 'leased', fields => '{"/a": "h2"}', state => '2',
    token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', policy => 'long'
);

select results_eq(
    'select outcome, attempt, token, recovery_point, state, status, headers, body, completed_at from second',
    $$values (
        'started', 1, 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb'::uuid, null::text, '2'::jsonb, null::int, null::jsonb,
        null::bytea, null::timestamptz
    )$$,
    'the first attempt, without anything of the last life'
);
select results_eq(
    'select expires_at - created_at, lease_until - created_at from second',
    $$values (interval '100 hours', interval '60 seconds')$$,
    'under the policy and in the mode of this call'
);
select is((select policy from idem.keys), 'long', 'which it remembers');
select ok((select created_at > clock_timestamp() + interval '23 hours' from second), 'created now');
select is(
    (idem.reserve('shop', 'k', '\x01', fields => '{"/a": "h1"}')).mismatched, array['/a'],
    'the fingerprint and the fields are those of the new life'
);
select throws_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200, '[]', 'x')$$,
    'IK002', null, 'the token of the last life is worth nothing'
);
select is(idem.complete('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 201), true, 'that of the new one is');

select * from finish();
rollback;
