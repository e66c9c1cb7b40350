-- By the list of unfinished keys, one by one, so that no completed one is read whatever the statistics say.
create or replace function idem_private.unfinished_keys()
returns table (
    policy text, state text, created_at timestamptz, lapsed_at timestamptz, retries boolean, claimable boolean
)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
    with clock as materialized (select idem_private.clock() as at)

    select
        r.policy,
        s.state,
        r.created_at,
        case when s.state = 'lapsed' then idem_private.lapsed_at(r) end,
        r.leased and p.on_lapse = 'retry' and (p.max_attempts is null or r.attempt < p.max_attempts),
        u.claims < p.max_claims
    from idem_private.unfinished as u
    inner join idem_private.reservation as r on u.scope = r.scope and u.key = r.key and r.completed_at is null
    cross join clock as c
    left join lateral (
        select a.on_lapse, a.max_attempts, a.max_claims from idem_private.policy as a where a.name = r.policy
        union all
        select b.on_lapse, b.max_attempts, b.max_claims from idem_private.retired_policy as b where b.name = r.policy
        limit 1
    ) as p on true
    cross join lateral (
        select idem_private.phase(r, interval '0', interval '0', c.at) as state
    ) as s
$$;

comment on function idem_private.unfinished_keys() is
'How each unfinished key stands, for idem.health and idem.stats: whether the next attempt may take it over, and a resolver claim it.';

revoke all on function idem_private.unfinished_keys() from public;
