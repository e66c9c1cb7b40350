begin;
select plan(2);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased');

-- Longer than the time that the statement takes.
update idem_private.reservation set lease_until = clock_timestamp() + interval '10 seconds';
select is_empty('select * from idem.claim_lapsed()', 'before it');
update idem_private.reservation set lease_until = clock_timestamp();
select isnt_empty('select * from idem.claim_lapsed()', 'from it on');

select * from finish();
rollback;
