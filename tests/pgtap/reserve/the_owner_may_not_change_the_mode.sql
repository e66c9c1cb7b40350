begin;
select plan(2);

set local idem.single_transaction = on;
select idem.reserve('shop', 'a', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('shop', 'l', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select throws_ok(
    $$select idem.reserve('shop', 'a', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$,
    'IK004', null, 'from atomic to leased'
);
select throws_ok(
    $$select idem.reserve('shop', 'l', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$,
    'IK004', null, 'from leased to atomic'
);

select * from finish();
rollback;
