create or replace view idem.keys as
select
    r.scope,
    r.key,
    r.policy,
    case when r.leased then 'leased' else 'atomic' end as mode,
    -- A key that no attempt would find any more, but that purge has not reached yet, is listed as expired.
    case phase.outcome when 'absent' then 'expired' else phase.outcome end as outcome,
    r.attempt,
    r.created_at,
    r.lease_until,
    case
        when phase.outcome <> 'lapsed' then null
        when r.leased then r.lease_until
        else greatest(r.created_at, r.owned_at)
    end as lapsed_at,
    r.released_at,
    r.completed_at,
    idem_private.real_expiry(r.expires_at, r.completed_at, p.min_retention) as expires_at,
    r.status,
    r.recovery_point,
    u.scope is not null as unfinished,
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
cross join (select idem_private.clock() as at) as now
cross join lateral (select idem_private.phase(r, p.min_retention, p.tombstone, now.at) as outcome) as phase;

comment on view idem.keys is
'Every stored key, for operators: no bodies, no tokens. Outcome is that of idem.lookup. Where unfinished is asked for, no completed key is read.';
