-- The view spells out the rule of idem_private.phase: here are all combinations of what the rule looks at.
begin;
select plan(2);

set local session_replication_role = replica;
select set_config('test.now', idem_private.clock()::text, true);
insert into idem.policies (name, tombstone) values ('kept', '1 hour');
create temp table moment as
select current_setting('test.now')::timestamptz + i.off as at
from unnest(array['-3 hours', '-1 hour', '-1 microsecond', '0', '1 microsecond', '1 hour']::interval[]) as i (off);
insert into idem_private.reservation (
    scope, key, policy, created_at, expires_at, owned_at, owner_xid, token, attempt, leased, lease, lease_until,
    released_at, completed_at
)
select
    'shop', row_number() over ()::text, p.name, expires.at - interval '1 day', expires.at, owned.at, x.id,
    gen_random_uuid(), 1, l.leased, '1 minute', case when l.leased then lease.at end, released.at, completed.at
from unnest(array['default', 'kept']) as p (name)
cross join moment as expires
cross join (select at from moment where at <= now() or at > now() + interval '1 minute') as owned
cross join unnest(array[pg_current_xact_id(), '1'::xid8, null]) as x (id)
cross join unnest(array[true, false]) as l (leased)
cross join moment as lease
cross join (select at from moment where at < now() union all select null) as released
cross join (select at from moment where at < now() union all select null) as completed;

create temp table told as
select
    k.key,
    k.outcome as shown,
    k.expires_at as shown_expiry,
    coalesce(nullif(idem_private.phase(r, p.min_retention, p.tombstone, now.at), 'absent'), 'expired') as meant,
    idem_private.real_expiry(r.expires_at, r.completed_at, p.min_retention) as meant_expiry
from idem.keys as k
inner join idem_private.reservation as r using (scope, key)
inner join idem_private.policy as p on r.policy = p.name
cross join (select idem_private.clock() as at) as now;

select is_empty(
    'select * from told where (shown, shown_expiry) is distinct from (meant, meant_expiry)'
);
select set_eq(
    'select shown from told', array['in_progress', 'lapsed', 'released', 'completed', 'expired'], 'each came up'
);

select * from finish();
rollback;
