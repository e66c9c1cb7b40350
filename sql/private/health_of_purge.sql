create or replace function idem_private.health_of_purge()
returns table (check_name text, ok boolean, detail text, fix text)
language plpgsql volatile as $$
declare
    most constant int := 1000;
    longest constant interval := interval '25 hours';
    at constant timestamptz := idem_private.clock();
    purge record;
begin
    select p.* into purge from idem.purge_state() as p;
    check_name := 'purge';
    fix := 'call idem.purge_all();';
    detail := case
        when purge.ended_at is null then 'has never run'
        else format('ended %s ago, removed %s', date_trunc('second', at - purge.ended_at), purge.removed)
    end;
    if purge.due is null then
        detail := detail || '; what is due cannot be seen without the index on expiry';
        return next;
        return;
    end if;
    ok := coalesce(at - purge.due_since < longest, true);
    detail := detail || case
        when purge.due = 0 then '; nothing is due'
        else format(
            '; %s%s due, the oldest for %s', purge.due, case when purge.due = most then ' or more' else '' end,
            date_trunc('second', at - purge.due_since)
        )
    end;
    return next;
end
$$;

comment on function idem_private.health_of_purge() is 'Checks of idem.health: the last purge, and what is left for the next.';

revoke all on function idem_private.health_of_purge() from public;
