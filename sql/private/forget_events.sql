create or replace function idem_private.forget_events(scope text, key text) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    forgotten bigint;
begin
    with of_finished as materialized (
        select e.key, e.number
        from idem_private.event as e
        where e.scope = forget_events.scope collate "C"
            and (forget_events.key is null or e.key = forget_events.key collate "C")
            and not exists (
                select from idem_private.reservation as r
                where r.scope = e.scope and r.key = e.key and r.completed_at is null
            )
        for update skip locked
    )

    delete from idem_private.event as e
    using of_finished as f
    where e.scope = forget_events.scope collate "C" and e.key = f.key and e.number = f.number;
    get diagnostics forgotten = row_count;
    return forgotten;
end
$$;

comment on function idem_private.forget_events(text, text) is
'Deletes the events of a key, or of all keys of a scope, but for unfinished ones, and returns how many.';

revoke all on function idem_private.forget_events(text, text) from public;
