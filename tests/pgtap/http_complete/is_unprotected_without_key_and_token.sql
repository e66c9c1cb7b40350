begin;
select plan(5);

select is(idem.http_complete('shop', null, null, 201), 'unprotected', 'nothing was reserved');
select is(idem.http_complete(null, null, null, 503), 'unprotected', 'whatever the status');
select throws_ok($$select idem.http_complete('shop', 'k', null, 201)$$, 'IK003', null, 'a key without a token');
select throws_ok(
    $$select idem.http_complete('shop', null, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201)$$, 'IK001', null,
    'a token without a key'
);
select throws_ok(
    $$select idem.http_complete(null, 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201)$$, 'IK001', null,
    'a key without a scope'
);

select * from finish();
rollback;
