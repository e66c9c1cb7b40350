begin;
select plan(3);

\ir ../refusal.psql
set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged');
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201);
create temp table before as table idem_private.reservation;

select is(
    pg_temp.refusal(format($$select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', %L)$$, point)),
    'IK002 already_completed', point
)
from unnest(array['charged', 'mailed']) as point;
select results_eq('table idem_private.reservation', 'table before');

select * from finish();
rollback;
