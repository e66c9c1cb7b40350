begin;
select plan(3);
\ir ../refusal.psql

select is(pg_temp.refusal('select idem.distribute()'), '0A000 no_citus', 'a single server');
\ir ../citus.psql
update coordinator set here = false;
select is(pg_temp.refusal('select idem.distribute()'), '0A000 not_the_coordinator', 'a worker');
select is_empty('select from pg_dist_partition', 'nothing is distributed');

select * from finish();
rollback;
