begin;
select plan(5);

\ir ../refusal.psql

select is(pg_temp.refusal($$select idem.reserve(null, 'k')$$), 'IK001 null', 'null');
select is(pg_temp.refusal($$select idem.reserve('', 'k')$$), 'IK001 empty', 'empty');
select is(pg_temp.refusal($$select idem.reserve(' ', 'k')$$), 'IK001 blank', 'a blank');
select is(pg_temp.refusal($$select idem.reserve('     ', 'k')$$), 'IK001 blank', 'blanks');
select is_empty('table idem_private.reservation', 'nothing is stored');

select * from finish();
rollback;
