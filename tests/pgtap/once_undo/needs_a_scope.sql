begin;
select plan(5);

\ir ../refusal.psql
select is(pg_temp.refusal($$select idem.once_undo(null, '{a}')$$), 'IK001 null');
select is(pg_temp.refusal($$select idem.once_undo('', '{a}')$$), 'IK001 empty');
select is(idem.once_undo('billing', '{}'), 0, 'no keys, no marks');
select is(idem.once_undo('billing', null), 0);
select is(idem.once_undo('billing', array[null, '', ' ', repeat('m', 300)]), 0, 'what is no key was never marked');

select * from finish();
rollback;
