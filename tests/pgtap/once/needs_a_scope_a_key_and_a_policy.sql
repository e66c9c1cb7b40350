begin;
select plan(10);

\ir ../refusal.psql
insert into idem.policies (name, key_min_length, key_pattern) values ('strict', 3, '^[a-z]+$');

select is(pg_temp.refusal($$select idem.once(null, 'm')$$), 'IK001 null', 'no scope');
select is(pg_temp.refusal($$select idem.once('billing', null)$$), 'IK001 null', 'no key');
select is(pg_temp.refusal($$select idem.once(' ', 'm')$$), 'IK001 blank', 'a blank scope');
select is(pg_temp.refusal($$select idem.once('billing', '')$$), 'IK001 empty', 'an empty key');
select is(pg_temp.refusal($$select idem.once('billing', E'm\n')$$), 'IK001 not_printable', 'a control character');
select is(
    pg_temp.refusal(format($$select idem.once('billing', %L)$$, repeat('m', 256))), 'IK001 too_long 255', 'too long'
);
select is(pg_temp.refusal($$select idem.once('billing', 'ab', 'strict')$$), 'IK001 too_short 3', 'by its policy');
select is(pg_temp.refusal($$select idem.once('billing', 'ABC', 'strict')$$), 'IK001 pattern', 'by its policy');
select is(pg_temp.refusal($$select idem.once('billing', 'm', 'none')$$), 'IK006 no_such_policy', 'no such policy');
select is_empty('table idem_private.reservation', 'nothing is stored');

select * from finish();
rollback;
