-- No plan before the calls under test: pgTAP writes.
begin;
select outcome as first from idem.reserve('shop', 'a', mode => 'leased') \gset
select outcome as second from idem.reserve('shop', 'b', mode => 'leased') \gset
select outcome as third from idem.reserve('shop', 'c', mode => 'leased') \gset
select plan(3);

select is(:'first'::text, 'started', 'the first');
select is(:'second'::text, 'started', 'the second');
select is(:'third'::text, 'started', 'the third');

select * from finish();
rollback;
