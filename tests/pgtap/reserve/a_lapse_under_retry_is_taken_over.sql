begin;
select plan(7);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
create temp table first as
select * from idem.reserve(
    'shop', 'k', '\x01', 'leased', state => '{"amount": 7}', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
    policy => 'again'
);
update idem_private.reservation set recovery_point = 'charged';

set local idem.clock_offset = '1 minute';
create temp table second as
select * from idem.reserve(
    'shop', 'k', '\x01', 'leased', '5 minutes', state => '{"amount": 8}',
    token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', policy => 'again'
);

select results_eq(
    'select outcome, attempt, token, recovery_point, state from second',
    $$values ('started', 2, 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb'::uuid, 'charged', '{"amount": 7}'::jsonb)$$,
    'the next attempt, under its token, with what the last owner left'
);
select results_eq(
    'select downstream_key, created_at, expires_at from second',
    'select downstream_key, created_at, expires_at from first',
    'in the same life of the key'
);
select ok(
    (select lease_until - clock_timestamp() > interval '5 minutes' from second), 'with a lease of its own'
);
select throws_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201)$$,
    'IK002', null, 'the last owner has lost it'
);
select is((idem.reserve('shop', 'k', '\x01', 'leased')).outcome, 'in_progress', 'others wait for the new owner');
select is(idem.complete('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 201), true, 'which completes it');
select is((idem.reserve('shop', 'k', '\x01')).attempt, 2, 'and whose answer is replayed');

select * from finish();
rollback;
