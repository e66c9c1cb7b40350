create or replace function idem_private.health_of_server()
returns table (check_name text, ok boolean, detail text, fix text)
language sql stable as $$
with server as (
    select
        pg_is_in_recovery() as standby,
        current_setting('default_transaction_read_only') = 'on' as read_only,
        current_setting('autovacuum') = 'on' and current_setting('track_counts') = 'on' as vacuums,
        current_setting('fsync') = 'on' as syncs,
        current_setting('synchronous_commit') as commits,
        current_setting('synchronous_standby_names') as synchronous,
        (select count(*) from pg_catalog.pg_stat_replication) as standbys,
        current_setting('max_locks_per_transaction')::bigint
        * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint) as locks,
        (select count(*) from pg_catalog.pg_locks as l where not l.fastpath) as locks_used,
        (select max(p.max_batch) from idem_private.policy as p) as largest_batch
),

tables as (
    select
        c.oid::regclass as name,
        s.n_dead_tup as dead,
        coalesce(o.options ->> 'autovacuum_enabled', 'true')::boolean as vacuums,
        coalesce(o.options ->> 'autovacuum_vacuum_threshold', current_setting('autovacuum_vacuum_threshold'))::numeric
        + coalesce(
            o.options ->> 'autovacuum_vacuum_scale_factor', current_setting('autovacuum_vacuum_scale_factor')
        )::numeric * greatest(c.reltuples, 0)::numeric as threshold,
        age(c.relfrozenxid) as age
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_stat_all_tables as s on c.oid = s.relid
    cross join lateral (
        select jsonb_object_agg(x.option_name, x.option_value) as options
        from pg_options_to_table(c.reloptions) as x
    ) as o
    where c.relnamespace = 'idem_private'::regnamespace and c.relkind = 'r'
),

behind as (
    select
        string_agg(
            case
                when not t.vacuums then format('it is off for %s', t.name)
                when t.dead > 10000 + 3 * t.threshold then format('%s has %s dead rows', t.name, t.dead)
                else format('%s is %s transactions old', t.name, t.age)
            end, '; '
        ) as detail,
        string_agg(
            case
                when not t.vacuums then format('alter table %s reset (autovacuum_enabled);', t.name)
                else format('vacuum (analyze) %s;', t.name)
            end, ' '
        ) as fix
    from tables as t
    where not t.vacuums or t.dead > 10000 + 3 * t.threshold
        or t.age > 1.5 * current_setting('autovacuum_freeze_max_age')::numeric
)

select
    'writable',
    not s.standby and not s.read_only,
    case
        when s.standby then 'this server is a read-only standby: no key can be reserved here'
        when s.read_only then 'default_transaction_read_only is on: no key can be reserved'
        else 'keys can be reserved'
    end,
    case
        when s.standby then 'Connect to the primary: target_session_attrs=read-write with all hosts in the connection string'
        else format(
            'alter database %I reset default_transaction_read_only; alter role %I reset default_transaction_read_only;',
            current_database(), session_user
        )
    end
from server as s
union all
select
    'autovacuum',
    s.vacuums and b.detail is null,
    case when not s.vacuums then 'it is off' else coalesce(b.detail, 'keeps up') end,
    case
        when not s.vacuums
            then 'alter system set autovacuum = on; alter system set track_counts = on; select pg_reload_conf();'
        else b.fix
    end
from server as s cross join behind as b
union all
select
    'lock_table',
    s.locks_used * 2 < s.locks and s.largest_batch * 4 <= s.locks,
    format('%s of %s slots in use, the largest max_batch is %s', s.locks_used, s.locks, s.largest_batch),
    format(
        'alter system set max_locks_per_transaction = %s;  -- and restart the server',
        4 * current_setting('max_locks_per_transaction')::bigint
    )
from server as s
union all
select
    'durability',
    s.syncs and not (s.commits = 'local' and s.synchronous <> ''),
    case
        when not s.syncs then 'fsync is off: a crash of the server can lose or damage everything'
        when s.commits = 'local' and s.synchronous <> ''
            then 'synchronous_commit is local: a leased reservation does not wait for the synchronous standbys'
        else format('synchronous_commit is %s; leased reservations wait for the disk in any case', s.commits)
    end,
    case
        when not s.syncs then 'alter system set fsync = on; select pg_reload_conf();'
        else format(
            'alter database %I reset synchronous_commit; alter role %I reset synchronous_commit;',
            current_database(), session_user
        )
    end
from server as s
union all
select
    'replication',
    case when not s.standby and (s.synchronous <> '' or s.standbys = 0) then true end,
    case
        when s.standby then 'this is a standby: ask the primary'
        when s.synchronous <> '' then format('synchronous_standby_names is %L', s.synchronous)
        when s.standbys = 0 then 'no standby is connected'
        else format(
            '%s connected, none synchronous: where one is promoted, the newest reservations can be missing', s.standbys
        )
    end,
    case
        when not s.standby then 'alter system set synchronous_standby_names = ''*''; select pg_reload_conf();'
    end
from server as s
$$;

comment on function idem_private.health_of_server() is 'Checks of idem.health: what the server must have set.';

revoke all on function idem_private.health_of_server() from public;
