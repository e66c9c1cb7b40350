begin;
select plan(7);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '{"charge": 3}');

select is(idem.release('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), true);
select is((idem.lookup('shop', 'k')).outcome, 'released', 'what was done is not forgotten');
select is((idem.reserve('shop', 'k', '\x02')).outcome, 'mismatch', 'the key stays that of its request');
select throws_ok(
    $$select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'mailed')$$, 'IK002', null,
    'the last owner has left it'
);
select results_eq(
    $$select outcome, attempt, recovery_point, state from idem.reserve(
        'shop', 'k', '\x01', 'leased', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb'
    )$$,
    $$values ('started', 2, 'charged', '{"charge": 3}'::jsonb)$$, 'and the next attempt goes on'
);
select is(
    idem.checkpoint('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 'mailed', '{"mail": 1}'), true, 'further'
);
select is(
    idem.checkpoint('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 'mailed', '{"mail": 1}'), false
);

select * from finish();
rollback;
