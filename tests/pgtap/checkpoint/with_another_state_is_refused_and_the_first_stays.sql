-- I11
begin;
select plan(6);

\ir ../refusal.psql
set local idem.single_transaction = on;
select idem.reserve('shop', key, mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')
from unnest(array['k', 'none']) as key;
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '{"charge": 1}');
select idem.checkpoint('shop', 'none', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged');
create temp table before as table idem_private.reservation;

select is(
    pg_temp.refusal(format(
        $$select idem.checkpoint('shop', %L, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', %L)$$, key, state
    )),
    'IK002 already_reached', key || ' ' || state
)
from (values ('k', '{"charge": 2}'), ('k', '{}'), ('k', 'null'), ('none', '{}'), ('none', 'null')) as t (key, state);
select set_eq('table idem_private.reservation', 'table before');

select * from finish();
rollback;
