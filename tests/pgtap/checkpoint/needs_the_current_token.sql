-- I6
begin;
select plan(5);

\ir ../refusal.psql
set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', null, 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'again');
set local idem.clock_offset = '1 hour';
select idem.reserve('shop', 'k', null, 'leased', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
create temp table before as table idem_private.reservation;

select is(
    pg_temp.refusal(format($$select idem.checkpoint('shop', 'k', %L, 'charged')$$, token)), 'IK002 not_the_owner', why
)
from (
    values ('cccccccc-cccc-4ccc-8ccc-cccccccccccc', 'a wrong one'), ('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'a stale one'),
        (null, 'none')
) as t (token, why);
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');
select is(idem.checkpoint('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 'charged'), true, 'the current one');

select * from finish();
rollback;
