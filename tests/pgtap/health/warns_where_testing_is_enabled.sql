begin;
select plan(2);
\ir ../check.psql

select matches(pg_temp.health('testing'), '^false: enabled');
select pg_temp.carry_out_fix('testing');
select is(pg_temp.health('testing'), 'true: not enabled');

select * from finish();
rollback;
