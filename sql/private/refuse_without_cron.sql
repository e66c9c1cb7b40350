create or replace function idem_private.refuse_without_cron(job_name text, schedule text, command text) returns void
language plpgsql stable as $$
declare
    statement constant text := format(
        'select cron.schedule_in_database(%L, %L, %L, %L);',
        refuse_without_cron.job_name, refuse_without_cron.schedule, refuse_without_cron.command, current_database()
    );
    -- What purge does by itself where it finds pg_cron beside it.
    trim_runs constant text := format(
        'select cron.schedule(%L, ''0 * * * *'', %L);',
        (refuse_without_cron.job_name || ', old runs')::name,
        format(
            'delete from cron.job_run_details where database = %L and command like %L and end_time < now() - interval %L',
            current_database(), 'call idem.purge_all(%', '7 days'
        )
    );
begin
    raise exception using
        errcode = '0A000',
        message = 'pg_cron is not installed in this database',
        detail = jsonb_build_object(
            'code', 'no_pg_cron', 'statements', jsonb_build_array(statement, trim_runs)
        )::text,
        hint = format(
            'Where another database of this server has it, run there, as a role that may call idem.purge_all here: '
            '%s %s Without pg_cron: pyidem purge --every 60.', statement, trim_runs
        );
end
$$;

comment on function idem_private.refuse_without_cron(text, text, text) is
'Raises 0A000 with the statements that schedule a job from the database that has pg_cron.';

revoke all on function idem_private.refuse_without_cron(text, text, text) from public;
