begin;
select plan(2);

select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select throws_ok(
    $$select idem.complete('shop', 'l', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK003', null, 'another key'
);
select throws_ok(
    $$select idem.complete('Shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK003', null, 'another scope'
);

select * from finish();
rollback;
