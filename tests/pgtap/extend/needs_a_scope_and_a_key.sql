begin;
select plan(4);

select throws_ok(
    $$select idem.extend(null, 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'no scope'
);
select throws_ok(
    $$select idem.extend('shop', null, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'no key'
);
select throws_ok(
    $$select idem.extend('', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'an empty scope'
);
select throws_ok(
    $$select idem.extend('shop', ' ', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'a blank key'
);

select * from finish();
rollback;
