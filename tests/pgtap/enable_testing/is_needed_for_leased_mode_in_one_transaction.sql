begin;
select plan(4);

select idem.disable_testing();
set local idem.single_transaction = on;

select throws_ok(
    $$select idem.reserve('shop', 'k', mode => 'leased')$$, 'IK004', null, 'without it reserve is refused'
);
select idem.enable_testing();
select is(
    (idem.reserve('shop', 'k', null, 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')).outcome, 'started'
);
select idem.disable_testing();
select throws_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK004', null,
    'without it complete is refused'
);
select idem.enable_testing();
select is(idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), true);

select * from finish();
rollback;
