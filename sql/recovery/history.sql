-- The row tells how a life of the key began and how it ended; what came between has been noted. A lapse that nobody has
-- acted on yet, or after which the owner completed all the same, follows from the row too.
create or replace function idem.history(scope text, key text)
returns table (at timestamptz, event text, attempt int, by_role name, reason text, detail jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
begin
    perform idem_private.check_scope(history.scope);
    perform idem_private.check_key(history.scope, history.key, 1, 1024, '');
    select r.* into held
    from idem_private.reservation as r
    where r.scope = history.scope collate "C" and r.key = history.key collate "C";
    return query
    with noted as (
        select e.*
        from idem_private.event as e
        where e.scope = history.scope collate "C" and e.key = history.key collate "C"
    ),

    stored as (
        select
            held.created_at as life,
            held.attempt,
            held.policy,
            held.completed_at,
            held.status,
            case
                when idem_private.is_lapsed(held, idem_private.clock())
                    or held.leased and held.lease_until < coalesce(held.released_at, held.completed_at)
                    then idem_private.lapsed_at(held)
            end as lapsed_at
        where held.scope is not null
    ),

    told as (
        select
            lives.life, lives.life as at, 0 as part, 0::bigint as number, 'reserved' as event, 1 as attempt,
            null::name as by_role, null as reason, jsonb_build_object('policy', s.policy) as detail
        from (select n.life from noted as n union select s.life from stored as s) as lives
        left join stored as s on lives.life = s.life
        union all
        select n.life, n.at, 1, n.number, n.event, n.attempt, n.by_role, n.reason, n.detail
        from noted as n
        union all
        select s.life, s.lapsed_at, 2, 0, 'lapsed', s.attempt, null, null, null
        from stored as s
        where s.lapsed_at is not null and not exists (
            select from noted as n
            where n.life = s.life and n.event in ('lapsed', 'deferred') and n.at >= s.lapsed_at
        )
        union all
        select s.life, s.completed_at, 3, 0, 'completed', s.attempt, null, null, jsonb_build_object('status', s.status)
        from stored as s
        where s.completed_at is not null
    )

    select t.at, t.event, t.attempt, t.by_role, t.reason, nullif(jsonb_strip_nulls(t.detail), '{}')
    from told as t
    order by t.life, t.at, t.part, t.number;
end
$$;

comment on function idem.history(text, text) is
'What happened to a key, in order: reserved, lapsed, taken_over, claimed, deferred, released, resolved, completed; with the role that did it and its reason. No token, no answer. Errors: IK001.';

revoke all on function idem.history(text, text) from public;
