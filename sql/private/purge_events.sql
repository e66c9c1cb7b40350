-- What became of an unfinished key stays for as long as it is unfinished. An operator's decision stays for 90 days
-- whatever the setting says, so that nobody who may purge can take it off the record at once.
create or replace function idem_private.purge_events(max_rows int) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    setting constant text := nullif(current_setting('idem.event_retention', true), '');
    oldest timestamptz := idem_private.clock() - coalesce(setting::interval, '90 days');
    oldest_decision timestamptz := least(oldest, idem_private.clock() - interval '90 days');
    prefixes constant text[] := idem_private.bound_prefixes();
    purged bigint;
begin
    with old as (
        select e.scope, e.key, e.number
        from idem_private.event as e
        where e.at < oldest and (e.event <> 'resolved' or e.at < oldest_decision)
            and (prefixes is null or idem_private.is_within(e.scope, prefixes))
            and not exists (
                select from idem_private.reservation as r
                where r.scope = e.scope and r.key = e.key and r.completed_at is null
            )
        order by e.at
        limit purge_events.max_rows
        for update skip locked
    )

    delete from idem_private.event as e
    using old as o
    where e.scope = o.scope and e.key = o.key and e.number = o.number;
    get diagnostics purged = row_count;
    return purged;
end
$$;

comment on function idem_private.purge_events(int) is
'Deletes a batch of the oldest events that are past idem.event_retention (90 days unless set), and returns how many.';

revoke all on function idem_private.purge_events(int) from public;
