begin;
select plan(1);

create temp table first as select * from idem.reserve('shop', 'k', '\x01', state => '1');
select idem.complete('shop', 'k', token, 201, '[["a", "b"]]', '\x00') from first;

select results_eq(
    $$
        select outcome, attempt, status, headers, body, created_at, expires_at, completed_at is not null
        from idem.lookup('shop', 'k')
    $$,
    $$
        select 'completed', 1, 201, '[["a", "b"]]'::jsonb, '\x00'::bytea, created_at, expires_at, true
        from first
    $$
);

select * from finish();
rollback;
