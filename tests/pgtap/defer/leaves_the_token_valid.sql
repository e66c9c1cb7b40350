begin;
select plan(2);

set local idem.single_transaction = on;
select idem.reserve('shop', 'a', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'a', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('shop', 'b', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'b', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(
    idem.complete('shop', 'a', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201), true, 'its owner may still complete'
);
select is(idem.release('shop', 'b', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), true, 'or release');

select * from finish();
rollback;
