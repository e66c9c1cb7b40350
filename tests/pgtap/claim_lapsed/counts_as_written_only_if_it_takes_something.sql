-- No plan before the calls under test: pgTAP writes.
begin;
select outcome as first from idem.reserve('shop', 'a', mode => 'leased') \gset
select count(*) as none from idem.claim_lapsed() \gset
select outcome as second from idem.reserve('shop', 'b', mode => 'leased') \gset
set local idem.clock_offset = '2 minutes';
select count(*) as taken from idem.claim_lapsed() \gset
select plan(3);

select is(:'none'::int, 0, 'it took nothing');
select is(:'second'::text, 'started', 'so another reservation may follow');
select is(:'taken'::int, 2, 'it took some');

select * from finish();
rollback;
