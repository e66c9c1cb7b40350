-- No plan before the calls under test: pgTAP writes.
begin;
\set token aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa
select outcome as first from idem.reserve('shop', 'a', mode => 'leased', token => :'token') \gset
select outcome as again from idem.reserve('shop', 'a', mode => 'leased', token => :'token') \gset
select outcome as second from idem.reserve('shop', 'b', mode => 'leased', token => :'token') \gset
select plan(2);

select is(:'again'::text, 'started', 'the same key');
select is(:'second'::text, 'started', 'and another one');

select * from finish();
rollback;
