begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
set local synchronous_commit = off;
select idem.resolve('shop', 'k', 'retry', 'asked');

select isnt(current_setting('synchronous_commit'), 'off');

select * from finish();
rollback;
