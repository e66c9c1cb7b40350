begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', reason => 'timed out');

select results_eq('select reason from idem.claim_lapsed()', $$values ('timed out')$$);

select * from finish();
rollback;
