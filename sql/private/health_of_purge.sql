-- What is due is counted from where the last purge began, if that left nothing: before it there are only index entries
-- of what is gone, and each of them would be stepped over. The plan is that of purge.
create or replace function idem_private.health_of_purge()
returns table (check_name text, ok boolean, detail text, fix text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
    most constant int := 1000;
    longest constant interval := interval '25 hours';
    at constant timestamptz := idem_private.clock();
    last idem_private.last_purge;
    due record;
begin
    select p.* into last from idem_private.last_purge as p;
    check_name := 'purge';
    fix := 'call idem.purge_all();';
    detail := case
        when last.ended_at is null then 'has never run'
        else format('ended %s ago, removed %s', date_trunc('second', at - last.ended_at), last.removed)
    end;
    if to_regclass('idem_private.reservation_expiry') is null then
        detail := detail || '; what is due cannot be seen without the index on expiry';
        return next;
        return;
    end if;

    select count(*) as keys, at - min(d.due_at) as age into due
    from (
        select coalesce(r.purge_at, r.expires_at) as due_at
        from idem_private.reservation as r
        where coalesce(r.purge_at, r.expires_at) <= at
            and coalesce(r.purge_at, r.expires_at)
            >= case when last.caught_up then last.started_at else timestamptz '-infinity' end
        order by coalesce(r.purge_at, r.expires_at)
        limit most
    ) as d;
    ok := coalesce(due.age < longest, true);
    detail := detail || case
        when due.keys = 0 then '; nothing is due'
        else format(
            '; %s%s due, the oldest for %s', due.keys, case when due.keys = most then ' or more' else '' end,
            date_trunc('second', due.age)
        )
    end;
    return next;
end
$$;

comment on function idem_private.health_of_purge() is 'Checks of idem.health: the last purge, and what is left for the next.';

revoke all on function idem_private.health_of_purge() from public;
