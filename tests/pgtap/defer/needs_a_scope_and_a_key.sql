begin;
select plan(4);

select throws_ok(
    $$select idem.defer(null, 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'no scope'
);
select throws_ok(
    $$select idem.defer('shop', null, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'no key'
);
select throws_ok(
    $$select idem.defer('', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'an empty scope'
);
select throws_ok(
    $$select idem.defer('shop', ' ', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'a blank key'
);

select * from finish();
rollback;
