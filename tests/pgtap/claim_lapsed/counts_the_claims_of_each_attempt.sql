begin;
select plan(1);

set local idem.single_transaction = on;

insert into idem.policies (name, max_claims, on_lapse) values ('again', 1, 'retry');
select idem.reserve('shop', 'k', mode => 'leased', policy => 'again');
set local idem.clock_offset = '1 day';
select idem.claim_lapsed();
set local idem.clock_offset = '2 days';
select idem.reserve('shop', 'k', mode => 'leased');
set local idem.clock_offset = '3 days';

select results_eq('select attempt, claims from idem.claim_lapsed()', 'values (2, 1)');

select * from finish();
rollback;
