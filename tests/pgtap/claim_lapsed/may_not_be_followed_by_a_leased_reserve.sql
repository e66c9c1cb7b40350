-- No plan before the calls under test: pgTAP writes.
begin;
select outcome as first from idem.reserve('shop', 'a', mode => 'leased') \gset
set local idem.clock_offset = '2 minutes';
select count(*) as taken from idem.claim_lapsed() \gset
do $$
begin
    perform idem.reserve('shop', 'b', mode => 'leased');
exception when others then
    perform set_config('test.sqlstate', sqlstate, true);
end
$$;
select plan(1);

select is(current_setting('test.sqlstate', true), 'IK004');

select * from finish();
rollback;
