begin;
select plan(4);

set local idem.single_transaction = on;

select idem.release('shop', n || '', token), set_config('idem.clock_offset', n || ' hours', true)
from generate_series(1, 5) as n, idem.reserve('shop', n || '', mode => 'leased');
set local idem.clock_offset = '89 days';
select is(idem_private.purge_events(10), 0::bigint, 'kept for 90 days');
set local idem.clock_offset = '91 days';
select is(idem_private.purge_events(2), 2::bigint);
select results_eq('select key collate "default" from idem_private.event order by key', $$values ('3'), ('4'), ('5')$$, 'the oldest first');
select is(idem_private.purge_events(10), 3::bigint, 'then the rest');

select * from finish();
rollback;
