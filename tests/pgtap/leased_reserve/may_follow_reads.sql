-- No plan before the calls under test: pgTAP writes.
begin;
select count(*) from pg_catalog.pg_class \gset
select outcome as looked_up from idem.lookup('shop', 'a') \gset
select outcome as first from idem.reserve('shop', 'a', mode => 'leased') \gset
select outcome as looked_up from idem.lookup('shop', 'a') \gset
select outcome as second from idem.reserve('shop', 'b', mode => 'leased') \gset
select plan(3);

select is(:'first'::text, 'started', 'after a lookup');
select is(:'looked_up'::text, 'in_progress', 'a lookup between');
select is(:'second'::text, 'started', 'does not matter');

select * from finish();
rollback;
