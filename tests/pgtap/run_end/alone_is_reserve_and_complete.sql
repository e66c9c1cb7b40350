begin;
select plan(3);

create temp table answer as
select * from idem.run_end('shop', 'k', '\x01', null, row(201, '[["a", "b"]]', 'x'));
select results_eq(
    'select outcome, attempt, status, headers, body, expires_at - created_at from answer',
    $$values ('started', 1, 201, '[["a", "b"]]'::jsonb, 'x'::bytea, interval '24 hours')$$
);
select results_eq(
    $$select outcome, attempt, status, headers, body from idem.reserve('shop', 'k', '\x01')$$,
    $$values ('replay', 1, 201, '[["a", "b"]]'::jsonb, 'x'::bytea)$$
);
select is((idem.reserve('shop', 'k', '\x02')).outcome, 'mismatch');

select * from finish();
rollback;
