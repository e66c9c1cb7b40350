begin;
select plan(2);

select throws_ok(
    $$select idem.release(null, 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'no scope'
);
select throws_ok(
    $$select idem.release('shop', null, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'no key'
);

select * from finish();
rollback;
