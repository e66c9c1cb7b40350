-- I11
begin;
select plan(2);

select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 204, '[]', '');

select throws_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 204, null, '')$$,
    'IK002', null, 'no headers are other content than empty ones'
);
select throws_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 204, '[]')$$,
    'IK002', null, 'no body is other content than an empty one'
);

select * from finish();
rollback;
