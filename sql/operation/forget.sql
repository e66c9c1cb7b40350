-- Unfinished keys stay: what may have happened is not known, and that must not be forgotten. What somebody has locked
-- is skipped.
create or replace function idem.forget(scope text, key text default null) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    forgotten bigint;
begin
    perform idem_private.check_scope(forget.scope);
    perform idem_private.check_key(forget.scope, coalesce(forget.key, '-'), 1, 1024, '');
    with finished as materialized (
        select r.key
        from idem_private.reservation as r
        where r.scope = forget.scope collate "C" and (forget.key is null or r.key = forget.key collate "C")
            and r.completed_at is not null
        for update skip locked
    )

    delete from idem_private.reservation as r
    using finished as f
    where r.scope = forget.scope collate "C" and r.key = f.key;
    get diagnostics forgotten = row_count;
    perform idem_private.forget_events(forget.scope, forget.key);
    return forgotten;
end
$$;

comment on function idem.forget(text, text) is
'Erases the finished keys of a scope, or one of them, with their history, and returns how many. Unfinished keys stay; what is locked is skipped, so repeat it until nothing is left. Never waits. Errors: IK001.';

revoke all on function idem.forget(text, text) from public;
