-- By the list of unfinished keys, one by one (a limit keeps the planner from anything else), so that no completed one
-- is read whatever the statistics say.
create or replace function idem_private.unfinished_keys()
returns table (
    policy text, state text, created_at timestamptz, lapsed_at timestamptz, retries boolean, claimable boolean
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    listed idem_private.unfinished;
    held idem_private.reservation;
    settings idem_private.policy;
begin
    if not idem_private.is_distributed() then
        return query
        with clock as materialized (select idem_private.clock() as at)

        select
            k.policy,
            k.state,
            k.created_at,
            case when k.state = 'lapsed' then k.lapsed_at end,
            k.leased and p.on_lapse = 'retry' and (p.max_attempts is null or k.attempt < p.max_attempts),
            u.claims < p.max_claims
        from idem_private.unfinished as u
        cross join clock as c
        cross join lateral (
            select
                r.policy, r.created_at, r.leased, r.attempt,
                idem_private.lapsed_at(r) as lapsed_at,
                idem_private.phase(r, interval '0', interval '0', c.at) as state
            from idem_private.reservation as r
            where r.scope = u.scope and r.key = u.key and r.completed_at is null
            limit 1
        ) as k
        left join lateral (
            select a.on_lapse, a.max_attempts, a.max_claims from idem_private.policy as a where a.name = k.policy
            union all
            select b.on_lapse, b.max_attempts, b.max_claims from idem_private.retired_policy as b where b.name = k.policy
            limit 1
        ) as p on true;
        return;
    end if;
    -- Citus knows no limit inside of a lateral join.
    for listed in select u.* from idem_private.unfinished as u loop
        select r.* into held
        from idem_private.reservation as r
        where r.scope = listed.scope and r.key = listed.key and r.completed_at is null;
        continue when not found;
        settings := idem_private.policy_of(held.policy);
        policy := held.policy;
        state := idem_private.phase(held, interval '0', interval '0', idem_private.clock());
        created_at := held.created_at;
        lapsed_at := case when state = 'lapsed' then idem_private.lapsed_at(held) end;
        retries := held.leased and settings.on_lapse = 'retry'
            and (settings.max_attempts is null or held.attempt < settings.max_attempts);
        claimable := listed.claims < settings.max_claims;
        return next;
    end loop;
end
$$;

comment on function idem_private.unfinished_keys() is
'How each unfinished key stands, for idem.health and idem.stats: whether the next attempt may take it over, and a resolver claim it.';

revoke all on function idem_private.unfinished_keys() from public;
