-- pg_cron shows each role its own jobs, and a superuser all of them.
create or replace function idem_private.purge_jobs()
returns table (jobid bigint, jobname text, username text, active boolean)
language plpgsql stable as $$
begin
    if idem_private.cron_version() is null or not has_schema_privilege('cron', 'USAGE') then
        return;
    end if;
    return query execute
        'select j.jobid, j.jobname::text, j.username, j.active from cron.job as j
        where j.database = $1 and j.command ~* ''^\s*call\s+idem\.purge_all\M''
        order by j.jobid'
    using current_database();
end
$$;

comment on function idem_private.purge_jobs() is
'Jobs of pg_cron that purge this database, as far as the owner can see them.';

revoke all on function idem_private.purge_jobs() from public;
