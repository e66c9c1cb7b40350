create or replace function idem_private.purge_events_of_nodes(max_rows int) returns bigint
language plpgsql volatile as $$
declare
    setting constant text := nullif(current_setting('idem.event_retention', true), '');
    oldest constant timestamptz := idem_private.clock() - coalesce(setting::interval, '90 days');
    oldest_decision constant timestamptz := least(oldest, idem_private.clock() - interval '90 days');
    prefixes constant text[] := idem_private.bound_prefixes();
    batch record;
    removed bigint;
    purged bigint := bigint '0';
begin
    for batch in
        select old.scope, array_agg(old.number) as numbers
        from (
            select e.scope, e.number
            from idem_private.event as e
            where e.at < oldest and (e.event <> 'resolved' or e.at < oldest_decision)
                and (prefixes is null or idem_private.is_within(e.scope, prefixes))
                and not exists (
                    select from idem_private.reservation as r
                    where r.scope = e.scope and r.key = e.key and r.completed_at is null
                )
            order by e.at
            limit purge_events_of_nodes.max_rows
        ) as old
        group by old.scope
    loop
        delete from idem_private.event as e
        where e.scope = batch.scope and e.number = any(batch.numbers)
            and not exists (
                select from idem_private.reservation as r
                where r.scope = e.scope and r.key = e.key and r.completed_at is null
            );
        get diagnostics removed = row_count;
        purged := purged + removed;
    end loop;
    return purged;
end
$$;

comment on function idem_private.purge_events_of_nodes(int) is 'idem_private.purge_events on a Citus cluster, scope by scope.';

revoke all on function idem_private.purge_events_of_nodes(int) from public;
