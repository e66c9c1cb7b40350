begin;
select plan(1);

select throws_ok(
    $$select idem.extend('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK003', null
);

select * from finish();
rollback;
