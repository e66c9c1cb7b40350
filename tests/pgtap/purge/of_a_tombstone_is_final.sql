-- There is no answer any more: neither a longer min_retention nor a clock that is set back may promise one.
begin;
select plan(7);

insert into idem.policies (name, tombstone) values ('buried', '10 days');
select idem.complete('shop', 'k', token, 201) from idem.reserve('shop', 'k', policy => 'buried');
set local idem.clock_offset = '25 hours';
select idem.purge();

update idem.policies set min_retention = '100 days' where name = 'buried';
select is((idem.reserve('shop', 'k')).outcome, 'expired');
select is((idem.lookup('shop', 'k')).outcome, 'expired');
set local idem.clock_offset = '1 hour';
select is((idem.reserve('shop', 'k')).outcome, 'expired');
select is(idem.once('shop', 'k'), 'duplicate', 'its message has been handled');
select is((select outcome from idem.once_many('shop', '{k}')), 'duplicate');

set local idem.clock_offset = '25 hours';
update idem.policies set tombstone = '0' where name = 'buried';
select is((idem.reserve('shop', 'k')).outcome, 'started', 'a shorter tombstone counts at once');
select results_eq(
    $$select expired_at is null, purge_at is null, expires_at > clock_timestamp() from idem_private.reservation$$,
    'values (true, true, true)', 'and nothing of it is left in the next life'
);

select * from finish();
rollback;
