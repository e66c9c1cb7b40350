begin;
select plan(5);

insert into idem.policies (name, ttl, tombstone) values ('kept', '24 hours', '2 hours');
create temp table first as select * from idem.reserve('shop', 'k', '\x01', policy => 'kept');
select idem.complete('shop', 'k', token, 201, '[["a", "b"]]', 'x') from first;

set local idem.clock_offset = '24 hours';
create temp table answer as select * from idem.reserve('shop', 'k', '\x01', policy => 'kept');
select results_eq(
    $$
        select
            outcome, token, downstream_key, recovery_point, state, status, headers, body, mismatched, retry_after,
            lease_until
        from answer
    $$,
    $$values (
        'expired', null::uuid, null::uuid, null::text, null::jsonb, null::int, null::jsonb, null::bytea, null::text[],
        null::interval, null::timestamptz
    )$$,
    'expired, without the answer'
);
select is((select expires_at from answer), (select expires_at from first), 'since its expiry');
set local idem.clock_offset = '25 hours 59 minutes';
select is((idem.reserve('shop', 'k', '\x02', policy => 'kept')).outcome, 'mismatch', 'a mismatch comes first');
select is((idem.reserve('shop', 'k', '\x01', policy => 'kept')).outcome, 'expired', 'to the end of the window');
set local idem.clock_offset = '26 hours';
select is((idem.reserve('shop', 'k', '\x02', policy => 'kept')).outcome, 'started', 'then the key is free');

select * from finish();
rollback;
