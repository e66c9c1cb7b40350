begin;
select plan(4);

set local idem.single_transaction = on;

select idem.release('shop', 'a', token) from idem.reserve('shop', 'a', mode => 'leased');
select idem.resolve('shop', 'b', 'release', 'asked', force => true) from idem.reserve('shop', 'b', mode => 'leased');
set local idem.event_retention = '1 day';
set local idem.clock_offset = '25 hours';
select is(idem_private.purge_events(10), 1::bigint, 'shorter');
select results_eq('select event from idem_private.event', $$values ('resolved')$$, 'but not for decisions');
set local idem.event_retention = '100 days';
set local idem.clock_offset = '99 days';
select is(idem_private.purge_events(10), 0::bigint, 'longer');
set local idem.clock_offset = '101 days';
select is(idem_private.purge_events(10), 1::bigint);

select * from finish();
rollback;
