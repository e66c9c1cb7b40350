-- A batch of one row shows what purge looks at: were the others met again, it would not get to the last.
begin;
select plan(7);

set local idem.single_transaction = on;
insert into idem.policies (name, tombstone) values ('buried', '10 days');
insert into idem.policies (name, min_retention) values ('kept', '100 days');
select idem.reserve('shop', '1 unfinished', mode => 'leased');
select idem.complete('shop', '2 kept', token, 201) from idem.reserve('shop', '2 kept', policy => 'kept');
select idem.complete('shop', '3 buried', token, 201) from idem.reserve('shop', '3 buried', policy => 'buried');
select idem.complete('shop', '4', token, 201) from idem.reserve('shop', '4');

set local idem.clock_offset = '25 hours';
select is(idem.purge(1), 0::bigint, 'the unfinished one');
select is(idem.purge(1), 0::bigint, 'the one that is kept');
select is(idem.purge(1), 1::bigint, 'the one that gets a tombstone');
select is(idem.purge(1), 1::bigint, 'the last');
select is((idem.lookup('shop', '4')).outcome, 'absent');
select ok(
    (select bool_and(purge_at > idem_private.clock() + interval '59 minutes') from idem_private.reservation),
    'none of the others is met before it could go'
);
select ok(
    (select max(purge_at) <= idem_private.clock() + interval '30 days' from idem_private.reservation),
    'but each within 30 days, since policies change'
);

select * from finish();
rollback;
