begin;
select plan(4);

set local idem.single_transaction = on;

insert into idem.policies (name, max_claims) values ('thrice', 3);
select idem.reserve('shop', 'k', mode => 'leased', policy => 'thrice');
set local idem.clock_offset = '1 day';
select results_eq('select claims from idem.claim_lapsed()', 'values (1)');
set local idem.clock_offset = '2 days';
select results_eq('select claims from idem.claim_lapsed()', 'values (2)');
set local idem.clock_offset = '3 days';
select results_eq('select claims from idem.claim_lapsed()', 'values (3)');
set local idem.clock_offset = '4 days';
select is_empty('select * from idem.claim_lapsed()');

select * from finish();
rollback;
