-- Each key is treated as by idem.once, in few statements for all of them. Nothing here waits, so two batches cannot
-- deadlock: locks are tried, in the order of the keys, and rows that are locked are skipped.
create or replace function idem.once_many(scope text, keys text[], policy text default 'messages')
returns table (ordinal int, key text, outcome text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    settings idem_private.policy;
    at timestamptz;
    -- Keys are compared byte by byte, whatever the collation of the argument.
    wanted_keys constant text[] collate "C" := once_many.keys;
    candidate text collate "C";
    locked text[] collate "C";
    firsts text[] collate "C";
    duplicates text[] collate "C";
begin
    perform idem_private.check_scope(once_many.scope);
    select p.* into settings
    from idem_private.policy as p
    where p.name = coalesce(once_many.policy, 'messages') collate "C";
    if settings.name is null then
        perform idem_private.check_call(once_many.scope, '-', coalesce(once_many.policy, 'messages'));
    end if;
    perform idem_private.check_key(once_many.scope, '-', 1, 1024, '');
    if cardinality(wanted_keys) > settings.max_batch then
        raise exception using
            errcode = 'IK007',
            message = format(
                'a batch of %s keys, where the policy allows %s', cardinality(wanted_keys), settings.max_batch
            ),
            detail = jsonb_build_object(
                'code', 'batch_too_large', 'argument', 'keys', 'limit', settings.max_batch
            )::text,
            hint = 'Split the batch: each key takes a slot of the lock table. Or raise max_batch of the policy.';
    end if;
    for candidate in
        select wanted.key
        from unnest(wanted_keys) as wanted (key)
        where idem_private.key_fits(
            once_many.scope, wanted.key, settings.key_min_length, settings.key_max_length, settings.key_pattern
        ) is not true
    loop
        perform idem_private.check_key(
            once_many.scope, candidate, settings.key_min_length, settings.key_max_length, settings.key_pattern
        );
    end loop;

    with missing as materialized (
        select distinct wanted.key
        from unnest(wanted_keys) as wanted (key)
        where not exists (
            select from idem_private.reservation as r
            where r.scope = once_many.scope collate "C" and r.key = wanted.key
        )
        order by 1
    )
    select array_agg(missing.key) into locked
    from missing
    where pg_try_advisory_xact_lock(idem_private.lock_id(once_many.scope, missing.key));

    if current_setting('transaction_isolation') <> 'read committed' then
        perform idem_private.require_fresh_snapshot(once_many.scope, held.key) from unnest(locked) as held (key);
    end if;
    at := idem_private.clock();
    with marked as (
        insert into idem_private.reservation as r (
            scope, key, policy, created_at, expires_at, owned_at, owner_xid, attempt, leased, completed_at
        )
        select
            once_many.scope, held.key, settings.name, at, at + settings.ttl, clock_timestamp(), pg_current_xact_id(),
            1, false, at
        from unnest(locked) as held (key)
        where not exists (
            select from idem_private.reservation as r
            where r.scope = once_many.scope collate "C" and r.key = held.key
        )
        on conflict do nothing
        returning r.key
    )
    select coalesce(array_agg(marked.key), '{}') into firsts
    from marked;

    -- The quick yes for redeliveries.
    select coalesce(array_agg(r.key), '{}') into duplicates
    from idem_private.reservation as r
    where r.scope = once_many.scope collate "C" and r.key = any(wanted_keys) and r.key <> all(firsts)
        and r.completed_at is not null and r.policy = settings.name
        and at < idem_private.real_expiry(r.expires_at, r.completed_at, settings.min_retention);

    for candidate in
        select r.key
        from idem_private.reservation as r
        where r.scope = once_many.scope collate "C" and r.key = any(wanted_keys)
            and r.key <> all(firsts || duplicates)
    loop
        case idem_private.mark_existing(once_many.scope, candidate, settings.name, settings.ttl)
            when 'first' then firsts := firsts || candidate;
            when 'duplicate' then duplicates := duplicates || candidate;
            else null;
        end case;
    end loop;

    return query
    select
        wanted.ordinal::int,
        wanted.key,
        case
            when wanted.key = any(duplicates) then 'duplicate'
            when wanted.key <> all(firsts) then 'in_progress'
            when wanted.ordinal = min(wanted.ordinal) over (partition by wanted.key) then 'first'
            else 'duplicate'
        end
    from unnest(wanted_keys) with ordinality as wanted (key, ordinal)
    order by wanted.ordinal;
end
$$;

comment on function idem.once_many(text, text[], text) is
'idem.once for a batch: one row per element, in order; a key that comes again in the batch is a duplicate there. Never waits. Errors: IK001, IK006, IK007 above max_batch of the policy.';

revoke all on function idem.once_many(text, text[], text) from public;
