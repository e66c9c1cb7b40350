begin;
select plan(6);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, max_attempts) values ('again', 'retry', 2);
create function pay(args jsonb) returns idem.response language sql as
$$select row(201, '[["a", "b"]]', 'paid')::idem.response$$;
select idem.reserve('shop', 'lapsed', '\x01', 'leased', policy => 'again');
select idem.reserve('shop', 'released', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.checkpoint('shop', 'released', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged');
select idem.release('shop', 'released', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set local idem.clock_offset = '2 minutes';
create temp table answer as
select 'lapsed' as key, a.* from idem.run('shop', 'lapsed', '\x01', 'pay(jsonb)', '{}') as a union all
select 'released', a.* from idem.run('shop', 'released', '\x01', 'pay(jsonb)', '{}') as a;
select results_eq(
    'select key, outcome, attempt, status, headers, body from answer order by key',
    $$values
        ('lapsed', 'started', 2, 201, '[["a", "b"]]'::jsonb, 'paid'::bytea),
        ('released', 'started', 2, 201, '[["a", "b"]]', 'paid')$$,
    'the next attempt'
);
select results_eq(
    $$
        select a.key, l.outcome, l.attempt, l.status, l.headers, l.body, l.created_at, l.completed_at, l.expires_at
        from answer as a cross join lateral idem.lookup('shop', a.key) as l order by a.key
    $$,
    $$
        select key, 'completed', attempt, status, headers, body, created_at, completed_at, expires_at
        from answer order by key
    $$,
    'is stored'
);
select ok((select bool_and(expires_at - created_at = '24 hours') from answer), 'in the same life of the key');
select is_empty('table idem_private.unfinished', 'nothing is unfinished any more');
select throws_ok(
    $$select idem.complete('shop', 'lapsed', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 500)$$, 'IK002', null,
    'the last owner has lost it'
);
select lives_ok('set constraints all immediate', 'it commits');

select * from finish();
rollback;
