-- The row of an earlier transaction, as the check would have refused it.
begin;
select plan(8);
\ir ../citus.psql

insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.distribute();
select idem.reserve('shop', 'held'), idem.reserve('shop', 'again', policy => 'again');
update idem_private.reservation set owner_xid = '1';

select is((idem.reserve('shop', 'held')).outcome, 'unresolved', 'it is not free');
select is((idem.reserve('shop', 'again')).outcome, 'unresolved', 'nor under retry');
select is((idem.lookup('shop', 'held')).outcome, 'lapsed');
select is(idem.once('shop', 'held'), 'in_progress', 'a message that it is not acknowledged');
select is((select count(*) from idem.claim_lapsed()), 0::bigint, 'nobody has listed it');
select is(
    (select key from idem.claim_lapsed(scope => 'shop', key => 'held')), 'held', 'a resolver who names it gets it'
);
set local idem.clock_offset = '25 hours';
select is(idem.purge(), 0::bigint, 'no purge forgets it');
select is(
    (select array_agg(key) from idem.claim_lapsed() where key = 'again'), array['again'],
    'the first purge after its retention lists it for all'
);

select * from finish();
rollback;
