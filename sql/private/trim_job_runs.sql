create or replace function idem_private.trim_job_runs() returns void
language plpgsql volatile as $$
declare
    kept constant interval := interval '7 days';
begin
    if idem_private.cron_version() is null or not has_schema_privilege('cron', 'USAGE') then
        return;
    end if;
    -- Older releases have no such table.
    if exists (
        select from pg_catalog.pg_class as c
        where c.relnamespace = (select n.oid from pg_catalog.pg_namespace as n where n.nspname = 'cron')
            and c.relname = 'job_run_details'
            and has_table_privilege(c.oid, 'SELECT') and has_table_privilege(c.oid, 'DELETE')
    ) then
        execute
            'delete from cron.job_run_details as d
            where d.database = current_database() and d.username = current_user
                and d.command ~* ''^\s*call\s+idem\.purge_all\M'' and coalesce(d.end_time, d.start_time) < $1'
        using idem_private.clock() - kept;
    end if;
end
$$;

comment on function idem_private.trim_job_runs() is
'Deletes what pg_cron has recorded of runs of the owner''s own purge jobs that are seven days old.';

revoke all on function idem_private.trim_job_runs() from public;
