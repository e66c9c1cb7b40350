begin;
select plan(2);

select idem.reserve('shop', 'k', '\x01', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(
    idem.complete(
        scope => 'shop', key => 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', status => 201,
        headers => '[["Location", "/refunds/1"]]', body => 'done'
    ),
    true
);
select results_eq(
    $$select outcome, status, headers, body from idem.reserve('shop', 'k', '\x01')$$,
    $$values ('replay', 201, '[["Location", "/refunds/1"]]'::jsonb, 'done'::bytea)$$
);

select * from finish();
rollback;
