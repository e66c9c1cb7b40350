-- I7
begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(idem_private.forget_events('shop', 'k'), 0::bigint);

select * from finish();
rollback;
