begin;
select plan(3);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', retry_in => '1 hour');

set local idem.clock_offset = '59 minutes';
select is_empty('select * from idem.claim_lapsed()', 'not before');
select is_empty($$select * from idem.claim_lapsed(scope => 'shop', key => 'k')$$, 'not by name either');
set local idem.clock_offset = '1 hour';
select isnt_empty('select * from idem.claim_lapsed()', 'then');

select * from finish();
rollback;
