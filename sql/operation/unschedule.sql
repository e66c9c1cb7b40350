create or replace function idem.unschedule() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    job record;
    removed int := 0;
begin
    for job in select * from idem_private.purge_jobs() loop
        if job.username = current_user then
            execute 'select cron.unschedule($1)' using job.jobid;
            removed := removed + 1;
        else
            raise warning using
                message = format('job %s of role %I purges this database and stays', job.jobid, job.username),
                hint = format('To remove it: select cron.unschedule(%s);', job.jobid);
        end if;
    end loop;
    return removed;
end
$$;

comment on function idem.unschedule() is
'Removes what idem.schedule has made, and returns how many jobs that were; no error where there is none.';

revoke all on function idem.unschedule() from public;
