begin;
select plan(5);

select idem.http_reserve('shop', 'k', 'POST', '/', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as
select r.xmin::text as version, r.ctid::text as place, r.* from idem_private.reservation as r;

select is(
    idem.http_complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 503, '[["A", "b"]]', 'x'), 'rollback',
    '5xx'
);
select is(
    idem.http_complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 429), 'rollback',
    'a releasing status'
);
select results_eq(
    'select r.xmin::text as version, r.ctid::text as place, r.* from idem_private.reservation as r',
    'select * from before',
    'the row is untouched'
);
select is(
    idem.http_complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200), 'stored',
    'a better answer may still come'
);
select throws_ok(
    $$select idem.http_complete('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 503)$$, 'IK002', null,
    'a stale token is told so, whatever the status'
);

select * from finish();
rollback;
