-- What is due is counted from where the last purge began, if that left nothing: before it there are only index entries
-- of what is gone, and each of them would be stepped over. The plan is that of purge.
create or replace function idem.purge_state()
returns table (started_at timestamptz, ended_at timestamptz, removed bigint, due bigint, due_since timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
    most constant int := 1000;
    at constant timestamptz := idem_private.clock();
    last idem_private.last_purge;
begin
    select p.* into last from idem_private.last_purge as p;
    started_at := last.started_at;
    ended_at := last.ended_at;
    removed := last.removed;
    if to_regclass('idem_private.reservation_expiry') is not null then
        select count(*), min(d.due_at) into due, due_since
        from (
            select coalesce(r.purge_at, r.expires_at) as due_at
            from idem_private.reservation as r
            where coalesce(r.purge_at, r.expires_at) <= at
                and coalesce(r.purge_at, r.expires_at)
                >= case when last.caught_up then last.started_at else timestamptz '-infinity' end
            order by coalesce(r.purge_at, r.expires_at)
            limit most
        ) as d;
    end if;
    return next;
end
$$;

comment on function idem.purge_state() is
'What the last purge did, whoever ran it, and what is left for the next: keys that are due, counted up to 1,000, and since when. Null where that cannot be seen, for want of the index on expiry.';

revoke all on function idem.purge_state() from public;
