begin;
select plan(3);

set local idem.single_transaction = on;
select idem.http_reserve('shop', 'k', 'POST', '/', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select is(
    idem.http_complete(
        'shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200, '[["idempotency-body-omitted", "true"], ["a", "b"]]'
    ),
    'stored',
    'the answer is stored'
);
select results_eq(
    $$select outcome, headers, body from idem.http_reserve('shop', 'k', 'POST', '/')$$,
    $$values (
        'replay',
        '[["a", "b"], ["Idempotency-Body-Omitted", "true"], ["Idempotency-Replayed", "true"]]'::jsonb,
        null::bytea
    )$$,
    'every replay says that the body is not there'
);

select idem.http_reserve('shop', 'l', 'POST', '/', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.http_complete(
    'shop', 'l', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200, '[["idempotency-body-omitted", "true"]]', ''
);
select results_eq(
    $$select headers, body from idem.http_reserve('shop', 'l', 'POST', '/')$$,
    $$values ('[["Idempotency-Replayed", "true"]]'::jsonb, ''::bytea)$$,
    'with a body the mark is that of another answer, and not stored'
);

select * from finish();
rollback;
