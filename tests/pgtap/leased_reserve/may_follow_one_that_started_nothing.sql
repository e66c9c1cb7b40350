-- No plan before the calls under test: pgTAP writes.
begin;
select outcome as first from idem.reserve('shop', 'a', '\x01', 'leased') \gset
select outcome as busy from idem.reserve('shop', 'a', '\x01', 'leased') \gset
select outcome as mismatch from idem.reserve('shop', 'a', '\x02', 'leased') \gset
select outcome as second from idem.reserve('shop', 'b', '\x01', 'leased') \gset
select plan(3);

select is(:'busy'::text, 'in_progress', 'a key in progress');
select is(:'mismatch'::text, 'mismatch', 'another request');
select is(:'second'::text, 'started', 'and a new key');

select * from finish();
rollback;
