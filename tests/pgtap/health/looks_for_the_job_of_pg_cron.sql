-- A stand-in for pg_cron, without its row security: it shows the jobs of all roles, as to a superuser.
begin;
select plan(19);
\ir ../check.psql

select is(pg_temp.health('purge_job'), 'false: pg_cron is not in this database; no purge has ever run');
select matches(pg_temp.fix('purge_job'), '^create extension pg_cron; select idem\.schedule\(\);.*pyidem purge --every 60$');
select is(pg_temp.health('purge_job_runs'), null, 'no job, no runs');
select idem.purge();
select matches(pg_temp.health('purge_job'), '^true: pg_cron is not in this database; but a purge ended 00:00:0\d ago$');
update idem_private.last_purge set ended_at = ended_at - interval '26 hours';
select matches(pg_temp.health('purge_job'), '^false: ', 'too long ago');

create schema cron;
create table cron.job (
    jobid bigint, jobname text, command text default 'call idem.purge_all()', database text default current_database(),
    username text, active boolean default true
);
create or replace function idem_private.cron_version() returns int[] language sql as 'select ''{1,6}''::int[]';
select matches(pg_temp.health('purge_job'), '^unknown: cannot see jobs of pg_cron: role idem_owner may not use its schema; the last purge ended 1 day 02:00:\d\d ago$');
select is(pg_temp.fix('purge_job'), 'grant usage on schema cron to idem_owner;');
grant usage on schema cron to idem_owner;
grant select on cron.job to idem_owner;
select matches(
    pg_temp.health('purge_job'),
    '^false: no job of pg_cron that role idem_owner can see purges this database; the last purge ended 1 day 02:00:\d\d ago$'
);
select matches(pg_temp.fix('purge_job'), '^select idem\.schedule\(\);  -- those of other roles');

create role idem_dba;
insert into cron.job (jobid, username) values (7, 'idem_dba');
select is(pg_temp.health('purge_job'), 'false: job 7 belongs to role idem_dba, which may not log in');
alter role idem_dba login;
select is(pg_temp.health('purge_job'), 'false: job 7 belongs to role idem_dba, which may not call idem.purge_all');
select idem.grant_operator('idem_dba');
select is(pg_temp.health('purge_job'), 'true: job 7 of role idem_dba is active');
update cron.job set active = false;
select is(pg_temp.health('purge_job'), 'false: job 7 is not active');
update cron.job set active = true;
select idem.revoke_access('idem_dba');
drop role idem_dba;
select is(pg_temp.health('purge_job'), 'false: job 7 belongs to role idem_dba, which does not exist');

insert into cron.job (jobid, username) values (8, 'idem_owner');
select is(pg_temp.health('purge_job'), 'true: job 8 of role idem_owner is active', 'one is enough');
select is(pg_temp.health('purge_job_runs'), 'unknown: cannot see what pg_cron has recorded of runs');
create table cron.job_run_details (jobid bigint, runid bigint, status text, return_message text, start_time timestamptz);
grant select on cron.job_run_details to idem_owner;
insert into cron.job_run_details values
(8, 1, 'succeeded', 'CALL', now() - interval '2 minutes'), (8, 2, 'failed', 'out of luck', now() - interval '1 minute'),
(8, 3, 'running', null, now()), (7, 4, 'succeeded', 'CALL', now());
select matches(pg_temp.health('purge_job_runs'), '^false: failed 00:01:0\d ago: out of luck$');
update cron.job_run_details set status = 'succeeded' where runid = 2;
select matches(pg_temp.health('purge_job_runs'), '^true: succeeded 00:01:0\d ago$');
update cron.job_run_details set start_time = now() - interval '26 hours' where runid < 3;
select matches(pg_temp.health('purge_job_runs'), '^false: succeeded 1 day 02:00:', 'pg_cron has stopped');

select * from finish();
rollback;
