-- Whoever reads a view calls the functions in it with his own rights and search_path. So the rule of idem_private.phase
-- is written out here, which is resolved once and for all, and what is called is pinned and called once, or only for
-- a reader that is bound to scopes. A barrier, so that no function in the WHERE of such a reader is shown other keys.
create or replace view idem.keys with (security_barrier) as
select
    r.scope,
    r.key,
    r.policy,
    case when r.leased then 'leased' else 'atomic' end as mode,
    state.outcome,
    r.attempt,
    r.created_at,
    r.lease_until,
    case
        when state.outcome <> 'lapsed' then null
        when r.leased then r.lease_until
        else greatest(r.created_at, r.owned_at)
    end as lapsed_at,
    r.released_at,
    r.completed_at,
    expiry.at as expires_at,
    r.status,
    r.recovery_point,
    u.scope is not null as unfinished,
    p.on_lapse,
    p.max_attempts,
    u.claims,
    p.max_claims,
    u.claim_after,
    u.reason
from idem_private.reservation as r
inner join (
    select a.* from idem_private.policy as a
    union all
    select b.* from idem_private.retired_policy as b
) as p on r.policy = p.name
left join idem_private.unfinished as u on r.scope = u.scope and r.key = u.key and r.completed_at is null
cross join idem_private.reader() as reader
cross join lateral (
    select coalesce(r.expired_at, greatest(r.expires_at, r.completed_at + p.min_retention)) as at
) as expiry
cross join lateral (
    select
        case
            when reader.at < expiry.at and r.expired_at is null and r.completed_at is not null then 'completed'
            -- also what no attempt would find any more, but purge has not reached yet
            when r.completed_at is not null then 'expired'
            when r.released_at is not null then 'released'
            when r.leased and r.lease_until > reader.at then 'in_progress'
            when not r.leased and r.owner_xid = pg_current_xact_id_if_assigned()
                and r.owned_at >= transaction_timestamp()
                then 'in_progress'
            else 'lapsed'
        end as outcome
) as state
where reader.prefixes is null or idem_private.is_within(r.scope, reader.prefixes);

comment on view idem.keys is
'Every stored key, for operators: no bodies, no tokens. Outcome is that of idem.lookup. Where unfinished is asked for, no completed key is read.';
