begin;
select plan(2);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased');
set local synchronous_commit = off;
select idem.claim_lapsed();
select is(current_setting('synchronous_commit'), 'off', 'nothing to commit');
set local idem.clock_offset = '2 minutes';
select idem.claim_lapsed();
select isnt(current_setting('synchronous_commit'), 'off', 'a claim');

select * from finish();
rollback;
