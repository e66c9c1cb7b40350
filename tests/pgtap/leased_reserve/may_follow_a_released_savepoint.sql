-- No plan before the calls under test: pgTAP writes.
begin;
savepoint before;
select outcome as first from idem.reserve('shop', 'a', mode => 'leased') \gset
release savepoint before;
savepoint before;
select outcome as second from idem.reserve('shop', 'b', mode => 'leased') \gset
select plan(2);

select is(:'first'::text, 'started', 'inside');
select is(:'second'::text, 'started', 'and after');

select * from finish();
rollback;
