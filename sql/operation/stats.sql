-- Of finished keys only what the planner knows is read: rows of the table as it counts them, their shares by policy
-- from the statistics that ANALYZE keeps. Sizes are shares of the whole table, its indexes and its stored bodies.
create or replace function idem.stats()
returns table (policy text, state text, keys bigint, oldest timestamptz, bytes bigint, estimated boolean)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
with relation as materialized (
    select t.bytes, t.rows from idem_private.table_size() as t
),

unfinished as (
    select k.policy, k.state, count(*) as keys, min(k.created_at) as oldest
    from idem_private.unfinished_keys() as k
    group by k.policy, k.state
),

common as (
    select v.policy, f.share
    from pg_catalog.pg_stats as s
    cross join lateral unnest(s.most_common_vals::text::text[]) with ordinality as v (policy, place)
    inner join lateral unnest(s.most_common_freqs) with ordinality as f (share, place) using (place)
    where s.schemaname = 'idem_private' and s.tablename = 'reservation' and s.attname = 'policy' and not s.inherited
),

-- what ANALYZE has met too seldom to remember, or has not looked for at all, is of an unknown policy
shares as (
    select c.policy, c.share::numeric from common as c
    union all
    select null, 1 - coalesce(sum(c.share)::numeric, 0) from common as c
),

finished as (
    select
        s.policy,
        greatest(
            0, round(r.rows * s.share - coalesce((select sum(u.keys) from unfinished as u where u.policy = s.policy), 0))
        ) as keys
    from shares as s cross join relation as r
)

select
    listed.policy, listed.state, listed.keys::bigint, listed.oldest,
    coalesce(round(r.bytes * least(1, listed.keys / nullif(r.rows, 0))), 0)::bigint,
    listed.estimated
from (
    select u.policy, u.state, u.keys::numeric, u.oldest, false as estimated from unfinished as u
    union all
    select f.policy, 'finished', f.keys, null, true
    from finished as f
    where f.policy is not null or f.keys > 0
) as listed
cross join relation as r
order by listed.policy, listed.estimated, listed.state
$$;

comment on function idem.stats() is
'Keys per policy and state. Those of unfinished states are counted; finished ones (completed or expired) and all sizes are estimates of the planner, as of the last ANALYZE. Reads no finished key.';

revoke all on function idem.stats() from public;
