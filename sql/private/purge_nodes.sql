-- idem.purge where rows cannot be locked across scopes: a look at what is due on all nodes locks nothing, and then each
-- scope is purged for itself. Events go the same way.
create or replace function idem_private.purge_nodes(max_rows int, prefixes text[]) returns bigint
language plpgsql volatile as $$
declare
    at constant timestamptz := idem_private.clock();
    batch record;
    rows int := 0;
    removed bigint := bigint '0';
    caught_up boolean;
begin
    for batch in
        select due.scope, array_agg(due.key) as keys
        from (
            select r.scope, r.key
            from idem_private.reservation as r
            where coalesce(r.purge_at, r.expires_at) <= at
                and (purge_nodes.prefixes is null or idem_private.is_within(r.scope, purge_nodes.prefixes))
            order by coalesce(r.purge_at, r.expires_at)
            limit purge_nodes.max_rows
        ) as due
        group by due.scope
    loop
        rows := rows + cardinality(batch.keys);
        removed := removed + idem_private.purge_scope(batch.scope, batch.keys, at);
    end loop;
    caught_up := rows < purge_nodes.max_rows
        and idem_private.purge_events_of_nodes(purge_nodes.max_rows) < purge_nodes.max_rows;
    perform set_config(
        'idem_private.purge_reached', case when caught_up then '' else to_jsonb(at) #>> '{}' end, true
    );
    if purge_nodes.prefixes is null and idem_private.note_purge(
        at, coalesce(current_setting('idem_private.purge_from', true), '') <> '', removed, caught_up
    ) then
        perform idem_private.trim_job_runs();
    end if;
    return removed;
end
$$;

comment on function idem_private.purge_nodes(int, text[]) is 'idem.purge on a Citus cluster.';

revoke all on function idem_private.purge_nodes(int, text[]) from public;
