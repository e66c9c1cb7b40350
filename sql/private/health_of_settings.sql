-- What can be meant is left alone: only settings that undo each other are named.
create or replace function idem_private.health_of_settings()
returns table (check_name text, ok boolean, detail text, fix text)
language sql stable as $$
with odd as (
    select p.name, o.problem, o.change
    from idem_private.policy as p
    cross join lateral (values
        (
            p.on_lapse = 'retry' and p.max_attempts = 1,
            'retries after a lapse, but allows one attempt', 'max_attempts = null'
        ),
        (
            p.min_retention > p.ttl,
            format('keeps keys for min_retention (%s), which is longer than ttl (%s)', p.min_retention, p.ttl),
            'min_retention = ttl'
        ),
        (
            p.retry_after > greatest(p.ttl, p.min_retention),
            'asks clients to come back when the answer is gone', 'retry_after = ''1 second'''
        ),
        (
            p.lease > interval '1 hour',
            format('says in_progress for %s after a crash', p.lease), 'lease = ''1 minute'''
        ),
        (p.required and p.methods = '{}', 'requires a key, but covers no method', 'methods = ''{POST,PATCH}''')
    ) as o (found, problem, change)
    where o.found
),

lacking as (
    select a.role, a.given, r.object
    from idem_private.access as a
    inner join pg_catalog.pg_roles as held on a.role = held.oid
    inner join idem_private.rights() as r on a.given = any(r.given_by)
    where case
        when r.privileges = 'execute' then not has_function_privilege(a.role, to_regproc(r.object), 'execute')
        else not (
            select bool_and(has_table_privilege(a.role, to_regclass(r.object), wanted.privilege))
            from unnest(string_to_array(r.privileges, ', ')) as wanted (privilege)
        )
    end
    union all
    select a.role, a.given, 'schema idem'
    from idem_private.access as a
    inner join pg_catalog.pg_roles as held on a.role = held.oid
    where not has_schema_privilege(a.role, 'idem', 'usage')
)

select
    'policies',
    count(*) = 0,
    coalesce(
        string_agg(format('%s %s', o.name, o.problem), '; ' order by o.name, o.problem),
        'no policy contradicts itself'
    ),
    string_agg(format('update idem.policies set %s where name = %L;', o.change, o.name), ' ' order by o.name, o.problem)
from odd as o
union all
select
    'grants',
    count(*) = 0,
    case
        when count(*) = 0 then 'every role has what it was granted'
        else format('revoked since it was granted: %s', (
            select string_agg(format('%s of %s', f.object, f.role), ', ' order by f.role::text, f.object)
            from (select l.* from lacking as l order by l.role::text, l.object limit 3) as f
        ) || case when count(*) > 3 then format(' and %s more', count(*) - 3) else '' end)
    end,
    (
        select string_agg(format('select idem.grant_%s(%L);', g.given, g.role), ' ' order by g.role::text, g.given)
        from (
            select distinct l.given, r.rolname as role
            from lacking as l inner join pg_catalog.pg_roles as r on l.role = r.oid
        ) as g
    )
from lacking
union all
select
    'testing',
    not t.enabled,
    case when t.enabled then 'enabled: every session may move its clock and lift checks' else 'not enabled' end,
    'select idem.disable_testing();'
from (select idem_private.testing_enabled() as enabled) as t
$$;

comment on function idem_private.health_of_settings() is 'Checks of idem.health: policies, grants and testing.';

revoke all on function idem_private.health_of_settings() from public;
