begin;
select plan(2);

select throws_ok(
    $$select idem.defer(null, 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'no scope'
);
select throws_ok(
    $$select idem.defer('shop', null, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK001', null, 'no key'
);

select * from finish();
rollback;
