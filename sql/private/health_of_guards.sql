-- Each one is put back as it was recorded.
create or replace function idem_private.health_of_guards()
returns table (check_name text, ok boolean, detail text, fix text)
language sql stable as $$
with recorded as (
    select
        max(o.definition ->> 'definition') filter (where o.name = 'reservation_pkey on idem_private.reservation') as primary_key,
        max(o.definition ->> 'definition') filter (where o.name = 'idem_private.reservation_expiry') as expiry_index,
        max(o.definition ->> 'definition')
            filter (where o.name = 'reservation_completed on idem_private.reservation') as check_at_commit
    from idem_private.object as o
    where o.part_of = 'idem_private.reservation'
),

present as (
    select
        (
            select bool_or(i.indisvalid)
            from pg_catalog.pg_index as i
            where i.indrelid = c.oid and i.indisprimary
        ) as primary_key,
        (
            select bool_or(i.indisvalid)
            from pg_catalog.pg_index as i
            where i.indexrelid = to_regclass('idem_private.reservation_expiry')
        ) as expiry_index,
        (
            select bool_or(t.tgenabled in ('O', 'A') and t.tginitdeferred)
            from pg_catalog.pg_trigger as t
            where t.tgrelid = c.oid and t.tgname = 'reservation_completed'
        ) as check_at_commit,
        current_setting('session_replication_role') as session_role
    from pg_catalog.pg_class as c
    where c.oid = 'idem_private.reservation'::regclass
)

select
    'primary_key',
    coalesce(p.primary_key, false),
    case
        when p.primary_key then 'decides every race'
        when p.primary_key is null then 'missing: one key can be taken twice'
        else 'invalid: one key can be taken twice'
    end,
    case
        when p.primary_key is null then format('alter table idem_private.reservation add %s;', r.primary_key)
        else 'reindex table idem_private.reservation;'
    end
from present as p cross join recorded as r
union all
select
    'expiry_index',
    coalesce(p.expiry_index, false),
    case
        when p.expiry_index then 'leads purge to what has expired'
        when p.expiry_index is null then 'missing: each batch of purge reads the whole table'
        else 'invalid: each batch of purge reads the whole table'
    end,
    case
        when p.expiry_index is null then replace(r.expiry_index, 'CREATE INDEX', 'CREATE INDEX CONCURRENTLY') || ';'
        else 'reindex index concurrently idem_private.reservation_expiry;'
    end
from present as p cross join recorded as r
union all
select
    'check_at_commit',
    -- not recorded: idem.distribute has taken it away
    case
        when r.check_at_commit is not null then coalesce(p.check_at_commit, false) and p.session_role <> 'replica'
    end,
    case
        when r.check_at_commit is null
            then 'Citus runs no triggers: an atomic reservation committed unfinished is unresolved'
        when p.check_at_commit and p.session_role = 'replica'
            then 'session_replication_role is replica: an atomic reservation can be committed unfinished'
        when p.check_at_commit then 'no atomic reservation is committed unfinished'
        when p.check_at_commit is null then 'its trigger is missing: an atomic reservation can be committed unfinished'
        else 'its trigger is disabled: an atomic reservation can be committed unfinished'
    end,
    case
        when p.check_at_commit is null then r.check_at_commit || ';'
        when not p.check_at_commit
            then 'alter table idem_private.reservation enable trigger reservation_completed;'
        else format(
            'alter database %1$I reset session_replication_role; alter role %2$I reset session_replication_role;',
            current_database(), session_user
        )
    end
from present as p cross join recorded as r
$$;

comment on function idem_private.health_of_guards() is 'Checks of idem.health: what the invariants rest on.';

revoke all on function idem_private.health_of_guards() from public;
