-- Whose rights the session can have: those of the session user and of the role that SET ROLE took on, and of every role
-- that they can become by SET ROLE or inherit from: a chain of memberships that can be set, then one of memberships
-- that inherit. Before PostgreSQL 16 every membership could be set. A superuser could be anybody, so only its own name
-- counts. Inside a SECURITY DEFINER function current_user tells nothing.
--
-- The prefixes of all of them add up, and where there is one the session is bound: no membership and no SET ROLE lifts
-- a binding.
create or replace function idem_private.bound_prefixes() returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    with recursive reachable (role, by_set) as (
        select quote_ident(acting.name)::regrole::oid, true
        from unnest(array[session_user, idem_private.caller()]) as acting (name)
        union
        select m.roleid, reachable.by_set and option.can_set
        from reachable
        inner join pg_roles as r on reachable.role = r.oid and not r.rolsuper
        inner join pg_auth_members as m on r.oid = m.member
        cross join lateral (
            select
                coalesce((to_jsonb(m) ->> 'set_option')::boolean, true) as can_set,
                coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, r.rolinherit) as inherits
        ) as option
        where option.inherits or (option.can_set and reachable.by_set)
    )

    select array_agg(b.prefix)
    from idem_private.scope_binding as b
    where b.role in (select reachable.role from reachable)
$$;

comment on function idem_private.bound_prefixes() is
'The prefixes of the scopes that the session may name, by all the roles that it is or can be; null where none is bound.';

revoke all on function idem_private.bound_prefixes() from public;
