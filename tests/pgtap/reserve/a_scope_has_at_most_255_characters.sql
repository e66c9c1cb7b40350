begin;
select plan(6);

\ir ../refusal.psql

select is((idem.reserve('s', 'k')).outcome, 'started', '1');
select is((idem.reserve(repeat('s', 255), 'k')).outcome, 'started', '255');
select is((idem.reserve(repeat(U&'\+01F600', 255), 'k')).outcome, 'started', '255 emoji, which are 1020 bytes');
select is(pg_temp.refusal($$select idem.reserve(repeat('s', 256), 'k')$$), 'IK001 too_long 255', '256');
select is(
    pg_temp.refusal($$select idem.reserve(repeat(U&'\+01F600', 256), 'k')$$), 'IK001 too_long 255', '256 emoji'
);
select is(pg_temp.refusal($$select idem.reserve(repeat('s', 100000), 'k')$$), 'IK001 too_long 255', '100000');

select * from finish();
rollback;
