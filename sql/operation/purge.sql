-- One batch, in the order of the index on expiry. Rows are locked where nobody else has them, judged by their newest
-- version, and written by primary key. A row that is due in the index but must stay (unfinished, kept by
-- min_retention, or a tombstone) is put off to the time at which it could go, so that no later batch meets it before.
-- That is a time for purge alone: what a row means to an attempt is decided when it is read.
--
-- A dead index entry is stepped over by every scan until it is vacuumed, so idem.purge_all and pyidem purge let each
-- batch begin where the last one ended: that is what both settings are for, which at worst make a batch skip rows.
--
-- The plan is the one meant here whatever the statistics say, which change with every batch.
create or replace function idem.purge(max_rows int default 10000) returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
    most constant int := idem_private.check_max_rows(purge.max_rows);
    longest_wait constant interval := interval '30 days';
    at constant timestamptz := idem_private.clock();
    prefixes constant text[] := idem_private.bound_prefixes();
    from_ constant timestamptz := coalesce(
        nullif(current_setting('idem_private.purge_from', true), '')::timestamptz, timestamptz '-infinity'
    );
    batch record;
    removed bigint := bigint '0';
    caught_up boolean;
begin
    if idem_private.is_distributed() then
        return idem_private.purge_nodes(most, prefixes);
    end if;
    with settings as materialized (
        select p.name, p.min_retention, p.tombstone
        from idem_private.policy as p
        union all
        select p.name, p.min_retention, p.tombstone
        from idem_private.retired_policy as p
        where not exists (select from idem_private.policy as q where q.name = p.name)
    ),

    due as materialized (
        select
            r.scope, r.key, r.policy, r.expires_at, r.expired_at, r.completed_at,
            coalesce(r.purge_at, r.expires_at) as due_at
        from idem_private.reservation as r
        where coalesce(r.purge_at, r.expires_at) >= from_ and coalesce(r.purge_at, r.expires_at) <= at
            and (prefixes is null or idem_private.is_within(r.scope, prefixes))
        order by coalesce(r.purge_at, r.expires_at)
        limit most
        for update skip locked
    ),

    judged as (
        select
            due.scope, due.key, due.due_at, due.expired_at, s.tombstone,
            -- what is not finished cannot expire sooner than if it were finished now
            idem_private.real_expiry(due.expires_at, coalesce(due.completed_at, at), s.min_retention) as expiry,
            case
                when due.completed_at is null then 'unfinished'
                else idem_private.finished_phase(
                    due.expires_at, due.completed_at, due.expired_at, s.min_retention, s.tombstone, at
                )
            end as phase
        from due
        left join settings as s on due.policy = s.name
    )

    select
        count(*) as rows,
        max(j.due_at) as reached,
        array_agg(j.scope) as scopes,
        array_agg(j.key) as keys,
        array_agg(
            case
                when j.phase = 'absent' then 'remove'
                when j.phase = 'expired' and j.expired_at is null then 'clear'
                else 'put off'
            end
        ) as fates,
        array_agg(j.expiry) as expiries,
        array_agg(
            least(
                case when j.phase = 'expired' then coalesce(j.expired_at, j.expiry) + j.tombstone else j.expiry end,
                at + longest_wait
            )
        ) as next_looks
    into batch
    from judged as j;

    if 'remove' = any(batch.fates) then
        delete from idem_private.reservation as r
        using unnest(batch.scopes, batch.keys, batch.fates) as b (scope, key, fate)
        where b.fate = 'remove' and r.scope = b.scope collate "C" and r.key = b.key collate "C";
        get diagnostics removed = row_count;
    end if;
    if 'clear' = any(batch.fates) then
        update idem_private.reservation as r
        set
            expires_at = '-infinity',
            expired_at = b.expiry,
            purge_at = b.next_look,
            fields = null,
            recovery_point = null,
            state = null,
            status = null,
            headers = null,
            body = null
        from unnest(batch.scopes, batch.keys, batch.fates, batch.expiries, batch.next_looks)
            as b (scope, key, fate, expiry, next_look)
        where b.fate = 'clear' and r.scope = b.scope collate "C" and r.key = b.key collate "C";
        removed := removed + cardinality(array_positions(batch.fates, 'clear'));
    end if;
    if 'put off' = any(batch.fates) then
        update idem_private.reservation as r
        set purge_at = b.next_look
        from unnest(batch.scopes, batch.keys, batch.fates, batch.next_looks) as b (scope, key, fate, next_look)
        where b.fate = 'put off' and r.scope = b.scope collate "C" and r.key = b.key collate "C";
    end if;

    caught_up := batch.rows < most and idem_private.purge_events(most) < most;
    perform set_config(
        'idem_private.purge_reached',
        case when caught_up then '' else to_jsonb(coalesce(batch.reached, at)) #>> '{}' end,
        true
    );
    -- A role that is bound to scopes purges for itself.
    if prefixes is null and idem_private.note_purge(at, from_ > '-infinity', removed, caught_up) then
        perform idem_private.trim_job_runs();
    end if;
    return removed;
end
$$;

comment on function idem.purge(int) is
'Removes one batch of finished keys whose retention is over, or makes tombstones of them, and returns how many. Looks at max_rows rows at most, skips what is locked, never waits. Errors: 22023.';

revoke all on function idem.purge(int) from public;
