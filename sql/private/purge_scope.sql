-- What idem.purge does with a batch, for the due keys of one scope: each statement is about one scope, so that it goes
-- to one node of a Citus cluster.
create or replace function idem_private.purge_scope(scope text, keys text[], at timestamptz) returns bigint
language plpgsql volatile as $$
#variable_conflict use_column
declare
    longest_wait constant interval := interval '30 days';
    held idem_private.reservation;
    settings idem_private.policy;
    expiry timestamptz;
    phase text;
    absent text[] := array[]::text[];
    cleared bigint := bigint '0';
    removed bigint;
begin
    for held in
        select r.*
        from idem_private.reservation as r
        where r.scope = purge_scope.scope collate "C" and r.key = any(purge_scope.keys)
            and coalesce(r.purge_at, r.expires_at) <= purge_scope.at
        for update skip locked
    loop
        settings := idem_private.policy_of(held.policy);
        expiry := idem_private.real_expiry(
            held.expires_at, coalesce(held.completed_at, purge_scope.at), settings.min_retention
        );
        phase := case
            when held.completed_at is null then 'unfinished'
            else idem_private.phase(held, settings.min_retention, settings.tombstone, purge_scope.at)
        end;
        if phase = 'unfinished' and not held.leased then
            -- left behind, where no trigger could list it
            insert into idem_private.unfinished (scope, key) values (held.scope, held.key) on conflict do nothing;
        end if;
        if phase = 'absent' then
            absent := absent || held.key;
            continue;
        elsif phase = 'expired' then
            cleared := cleared + case when held.expired_at is null then 1 else 0 end;
            held.expired_at := coalesce(held.expired_at, expiry);
            expiry := held.expired_at + settings.tombstone;
        end if;
        expiry := least(expiry, purge_scope.at + longest_wait);
        update idem_private.reservation as r
        set
            expires_at = case when phase = 'expired' then '-infinity' else r.expires_at end,
            expired_at = held.expired_at,
            purge_at = expiry,
            fields = case when phase <> 'expired' then r.fields end,
            recovery_point = case when phase <> 'expired' then r.recovery_point end,
            state = case when phase <> 'expired' then r.state end,
            status = case when phase <> 'expired' then r.status end,
            headers = case when phase <> 'expired' then r.headers end,
            body = case when phase <> 'expired' then r.body end
        where r.scope = held.scope and r.key = held.key;
    end loop;

    delete from idem_private.reservation as r
    where r.scope = purge_scope.scope collate "C" and r.key = any(absent);
    get diagnostics removed = row_count;
    return removed + cleared;
end
$$;

comment on function idem_private.purge_scope(text, text[], timestamptz) is
'Removes the finished keys of a scope whose retention is over, or makes tombstones of them, among those that are due.';

revoke all on function idem_private.purge_scope(text, text[], timestamptz) from public;
