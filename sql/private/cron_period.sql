-- A run must be over before the next one is due. Of a schedule in cron's syntax only what is certain without a calendar
-- is said; whoever writes something more artful is given a minute.
create or replace function idem_private.cron_period(schedule text) returns interval
language sql immutable as $$
    select
        case
            when schedule ~* '^\s*\d{1,2}\s+seconds?\s*$'
                then make_interval(secs => substring(schedule from '\d+')::double precision)
            when schedule ~ '^\s*\d+\s+\d+\s' then interval '1 day'
            when schedule ~ '^\s*\d+\s' then interval '1 hour'
            when schedule ~ '^\s*\*/(2|3|4|5|6|10|12|15|20|30)\s'
                then make_interval(mins => substring(schedule from '\d+')::int)
            else interval '1 minute'
        end
$$;

comment on function idem_private.cron_period(text) is 'The least time between two runs of a schedule, or less.';

revoke all on function idem_private.cron_period(text) from public;
