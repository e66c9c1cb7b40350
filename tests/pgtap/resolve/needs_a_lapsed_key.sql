\ir ../refusal.psql

begin;
select plan(8);

set local idem.single_transaction = on;
select idem.reserve('shop', 'alive', mode => 'leased');
select idem.reserve('shop', 'atomic');
select idem.complete('shop', 'done', token) from idem.reserve('shop', 'done', mode => 'leased');
select idem.checkpoint('shop', 'released', token, 'half'), idem.release('shop', 'released', token)
from idem.reserve('shop', 'released', mode => 'leased');
create temp table before as table idem_private.reservation;

create function pg_temp.resolved(key text, force boolean) returns text language sql as $$
    select pg_temp.refusal(format('select idem.resolve(''shop'', %L, ''retry'', ''asked'', force => %L)', key, force))
$$;
select is(pg_temp.resolved('none', true), 'IK003 no_such_reservation', 'none');
select is(pg_temp.resolved('alive', false), 'IK004 not_lapsed', 'alive');
select is(pg_temp.resolved('alive', null), 'IK004 not_lapsed', 'alive');
select is(pg_temp.resolved('released', false), 'IK004 not_lapsed', 'released');
select is(pg_temp.resolved('atomic', true), 'IK004 not_lapsed', 'an open transaction, even by force');
select is(pg_temp.resolved('done', true), 'IK004 finished', 'finished, even by force');
set local idem.clock_offset = '25 hours';
select is(pg_temp.resolved('done', true), 'IK003 no_such_reservation', 'expired is as good as none');
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');

select * from finish();
rollback;
