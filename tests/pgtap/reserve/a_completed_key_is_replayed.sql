begin;
select plan(4);

create temp table first as select * from idem.reserve('shop', 'k', '\x01', state => '{"amount": 7}');
select idem.complete('shop', 'k', token, 201, '[["Location", "/refunds/1"]]', '\x00ff') from first;

create temp table answer as select * from idem.reserve('shop', 'k', '\x01');

select results_eq(
    'select outcome, attempt, status, headers, body from answer',
    $$values ('replay', 1, 201, '[["Location", "/refunds/1"]]'::jsonb, '\x00ff'::bytea)$$,
    'the stored answer'
);
select results_eq(
    'select token, downstream_key, recovery_point, state, mismatched, retry_after, lease_until from answer',
    $$values (
        null::uuid, null::uuid, null::text, null::jsonb, null::text[], null::interval, null::timestamptz
    )$$,
    'nothing that only an owner may know'
);
select results_eq(
    'select created_at, expires_at from answer', 'select created_at, expires_at from first', 'the same life of the key'
);
select ok(
    (select completed_at between created_at and clock_timestamp() from answer), 'completed by the real clock'
);

select * from finish();
rollback;
