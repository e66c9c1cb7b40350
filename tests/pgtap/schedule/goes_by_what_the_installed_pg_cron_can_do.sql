-- Schedules in seconds came with pg_cron 1.5. A stand-in says which version it is, and keeps what it is given.
begin;
select plan(3);
\ir ../refusal.psql

create schema cron;
create table cron.job (
    jobid bigint generated always as identity, schedule text, command text, database text default current_database(),
    username text default current_user, active boolean default true, jobname text
);
create function cron.schedule(job_name text, schedule text, command text) returns bigint language sql as
$$insert into cron.job (jobname, schedule, command) values ($1, $2, $3) returning jobid$$;
grant usage on schema cron to public;
grant all on cron.job to public;
create function pg_temp.install(version int[]) returns void language plpgsql as $$
begin
    execute format('create or replace function idem_private.cron_version() returns int[] language sql as %L',
        format('select %L::int[]', version));
end
$$;

select pg_temp.install('{1,4}');
select is(pg_temp.refusal($$select idem.schedule('30 seconds')$$), '22023 schedule_unfit', '1.4 knows no seconds');
select pg_temp.install('{1,6}');
select is(pg_temp.refusal($$select idem.schedule('30 seconds')$$), 'not refused', '1.6 does');
select results_eq(
    'select schedule, command from cron.job',
    $$values ('30 seconds', 'call idem.purge_all(10000, ''22.5 seconds'')')$$
);

select * from finish();
rollback;
