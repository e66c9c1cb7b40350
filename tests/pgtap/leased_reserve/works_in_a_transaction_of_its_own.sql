-- No plan before the calls under test: pgTAP writes.
begin;
select outcome from idem.reserve('shop', 'k', mode => 'leased') \gset
select plan(1);

select is(:'outcome'::text, 'started');

select * from finish();
rollback;
