-- The job belongs to the owner of pyidem, whoever calls this: so there is one, and whoever removes pyidem finds it.
-- Nothing of pg_cron is named outside dynamic SQL, since it may not be there.
create or replace function idem.schedule(
    schedule text default '* * * * *',
    max_rows int default 10000,
    max_time interval default null,
    job_name text default null
) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    wanted constant text := coalesce(schedule.schedule, '* * * * *');
    name constant text := coalesce(schedule.job_name, 'pyidem purge ' || current_database())::name::text;
    period constant interval := idem_private.cron_period(wanted);
    longest constant interval := coalesce(
        idem_private.check_interval('max_time', schedule.max_time), least(interval '45 seconds', period * 0.75)
    );
    command constant text := format(
        'call idem.purge_all(%s, %L)', idem_private.check_max_rows(schedule.max_rows),
        trim_scale(extract(epoch from longest)) || ' seconds'
    );
    version constant int[] := idem_private.cron_version();
    job record;
    taken boolean;
    id bigint;
begin
    if longest >= period then
        raise exception using
            errcode = '22023',
            message = format('max_time must be shorter than the time between two runs, %s', period),
            detail = jsonb_build_object('code', 'max_time_not_below_period', 'argument', 'max_time')::text,
            hint = 'What a run leaves is for the next one. Leave max_time out for its default.';
    end if;
    if version is null then
        perform idem_private.refuse_without_cron(name, wanted, command);
    end if;
    if wanted ~* 'second' and version < '{1,5}' then
        raise exception using
            errcode = '22023',
            message = format('pg_cron %s knows no schedules in seconds', array_to_string(version, '.')),
            detail = jsonb_build_object('code', 'schedule_unfit', 'argument', 'schedule')::text,
            hint = 'Use ''* * * * *'', once a minute; seconds need pg_cron 1.5.';
    end if;
    if not has_schema_privilege('cron', 'USAGE') or not (
        select r.rolcanlogin from pg_catalog.pg_roles as r where r.rolname = current_user
    ) then
        raise exception using
            errcode = '42501',
            message = format('role %I owns pyidem and cannot have jobs of pg_cron', current_user),
            detail = jsonb_build_object('code', 'no_right_to_cron', 'role', current_user)::text,
            hint = format('It must be able to log in and to use the schema: grant usage on schema cron to %I;', current_user);
    end if;

    execute
        'select exists (
            select from cron.job as j
            where j.jobname = $1 and j.username = current_user and j.jobid <> all($2)
        )'
    into taken
    using name, array(select p.jobid from idem_private.purge_jobs() as p);
    if taken then
        raise exception using
            errcode = '22023',
            message = format('%I has another job of this name', current_user),
            detail = jsonb_build_object('code', 'job_name_taken', 'argument', 'job_name')::text,
            hint = 'Names of jobs are shared by all databases. Choose another job_name.';
    end if;

    for job in select * from idem_private.purge_jobs() loop
        if job.username <> current_user then
            raise warning using
                message = format('job %s of role %I purges this database too', job.jobid, job.username),
                hint = format('One is enough. To remove it: select cron.unschedule(%s);', job.jobid);
        elsif job.jobname is distinct from name or not job.active then
            execute 'select cron.unschedule($1)' using job.jobid;
        end if;
    end loop;
    begin
        execute 'select cron.schedule($1, $2, $3)' into id using name, wanted, command;
    exception when invalid_parameter_value then
        raise exception using
            errcode = '22023',
            message = format('pg_cron does not understand the schedule: %s', sqlerrm),
            detail = jsonb_build_object('code', 'schedule_unfit', 'argument', 'schedule')::text,
            hint = 'Use five fields in cron''s syntax, such as ''* * * * *''; times are in GMT.';
    end;
    return id;
end
$$;

comment on function idem.schedule(text, int, interval, text) is
'Lets pg_cron run idem.purge_all, and returns the id of the job; repeated, it changes that job. Errors: 0A000 where pg_cron is not in this database, 22023, 42501.';

revoke all on function idem.schedule(text, int, interval, text) from public;
