-- Nothing of pg_cron is named outside dynamic SQL, since it may not be there. Whoever purges, a purge is a purge: where
-- one has ended within a day or so, no job is missed.
create or replace function idem_private.health_of_job()
returns table (check_name text, ok boolean, detail text, fix text)
language plpgsql volatile as $$
#variable_conflict use_column
declare
    longest constant interval := interval '25 hours';
    at constant timestamptz := idem_private.clock();
    purged_at constant timestamptz := (select p.ended_at from idem_private.last_purge as p);
    purged constant boolean := coalesce(purged_at > at - longest, false);
    otherwise constant text := case
        when purged_at is null then 'no purge has ever run'
        else format(
            '%s purge ended %s ago', case when purged then 'but a' else 'the last' end,
            date_trunc('second', at - purged_at)
        )
    end;
    job record;
    run record;
begin
    check_name := 'purge_job';
    if pg_is_in_recovery() then
        detail := 'this is a standby: its primary purges, ask that';
        return next;
        return;
    end if;
    if idem_private.cron_version() is null then
        ok := purged;
        detail := 'pg_cron is not in this database; ' || otherwise;
        fix := 'create extension pg_cron; select idem.schedule();  -- or without it: pyidem purge --every 60';
        return next;
        return;
    end if;
    if not has_schema_privilege('cron', 'USAGE') then
        detail := format('cannot see jobs of pg_cron: role %I may not use its schema; %s', current_user, otherwise);
        fix := format('grant usage on schema cron to %I;', current_user);
        return next;
        return;
    end if;

    select j.jobid, j.username, s.problem, s.fix into job
    from idem_private.purge_jobs() as j
    left join pg_catalog.pg_roles as r on j.username = r.rolname
    cross join lateral (
        select
            case
                when not j.active then 'is not active'
                when r.oid is null then format('belongs to role %I, which does not exist', j.username)
                when not r.rolcanlogin then format('belongs to role %I, which may not log in', j.username)
                when not has_schema_privilege(r.oid, 'idem', 'usage')
                    or not has_function_privilege(r.oid, 'idem.purge_all(int, interval)', 'execute')
                    then format('belongs to role %I, which may not call idem.purge_all', j.username)
            end as problem,
            case
                when r.oid is not null and not r.rolcanlogin then format('alter role %I login;', j.username)
                when r.oid is not null and j.active then format('select idem.grant_operator(%L);', j.username)
                when j.username = current_user then 'select idem.schedule();'
                else format('select cron.unschedule(%s); select idem.schedule();', j.jobid)
            end as fix
    ) as s
    order by s.problem is not null, j.jobid
    limit 1;
    if job.jobid is null then
        ok := purged;
        detail := format('no job of pg_cron that role %I can see purges this database; %s', current_user, otherwise);
        fix := 'select idem.schedule();  -- those of other roles, which may be gone, a superuser sees: table cron.job;';
        return next;
        return;
    end if;
    ok := job.problem is null;
    detail := format('job %s %s', job.jobid, coalesce(job.problem, format('of role %I is active', job.username)));
    fix := job.fix;
    return next;

    check_name := 'purge_job_runs';
    if to_regclass('cron.job_run_details') is null or not has_table_privilege('cron.job_run_details', 'SELECT') then
        ok := null;
        detail := 'cannot see what pg_cron has recorded of runs';
        fix := format('grant select on cron.job_run_details to %I;', current_user);
        return next;
        return;
    end if;
    execute
        'select d.status, d.return_message, d.start_time
        from (select r.* from cron.job_run_details as r order by r.runid desc limit 2000) as d
        where d.jobid = $1 and d.status in (''succeeded'', ''failed'')
        order by d.runid desc
        limit 1'
    into run
    using job.jobid;
    ok := case
        when run.status = 'failed' or run.start_time < at - longest then false
        when run.status = 'succeeded' or purged then true
    end;
    detail := case
        when run.status is null then 'no run is recorded among the last; ' || otherwise
        when run.status = 'failed'
            then format('failed %s ago: %s', date_trunc('second', at - run.start_time), run.return_message)
        else format('succeeded %s ago', date_trunc('second', at - run.start_time))
    end;
    fix := 'call idem.purge_all();  -- by hand shows what is wrong; pg_cron itself logs to the log of the server';
    return next;
end
$$;

comment on function idem_private.health_of_job() is 'Checks of idem.health: the job of pg_cron, and how it ran.';

revoke all on function idem_private.health_of_job() from public;
