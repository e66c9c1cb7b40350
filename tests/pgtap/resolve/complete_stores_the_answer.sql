begin;
select plan(3);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(
    idem.resolve(
        'shop', 'k', 'complete', 'asked', status => 201, headers => '[["a", "b"], ["a", "c"]]', body => '\x00ff'
    ), true
);
select results_eq(
    $$select outcome, attempt, status, headers, body from idem.reserve('shop', 'k', '\x01')$$,
    $$values ('replay', 1, 201, '[["a", "b"], ["a", "c"]]'::jsonb, '\x00ff'::bytea)$$
);
select is_empty('select * from idem.keys where unfinished', 'nobody looks for it any more');

select * from finish();
rollback;
