-- Looks through the short list of unfinished keys, each found in the big table by its primary key: the subselect with
-- OFFSET keeps the planner from ever reading that table as a whole. A key that is named is looked at even if it is not
-- on the list, where triggers do not run.
create or replace function idem_private.lapsed_keys(
    at timestamptz, prefixes text[], wanted_policy text, wanted_scope text, wanted_key text
) returns table (scope text, key text)
language plpgsql stable as $$
#variable_conflict use_column
declare
    named record;
    look idem_private.reservation;
    settings idem_private.policy;
    found_keys text[] := array[]::text[];
begin
    if not idem_private.is_distributed() then
        return query
        select named.scope, named.key
        from (
            select u.scope, u.key, u.claims, u.claim_after
            from idem_private.unfinished as u
            where (prefixes is null or idem_private.is_within(u.scope, prefixes))
                and (wanted_scope is null or u.scope = wanted_scope collate "C")
                and (wanted_key is null or u.key = wanted_key collate "C")
            union all
            select wanted_scope collate "C", wanted_key collate "C", 0, null
            where not exists (
                select from idem_private.unfinished as u
                where u.scope = wanted_scope collate "C" and u.key = wanted_key collate "C"
            )
        ) as named
        cross join lateral (
            select r as row_, r.policy
            from idem_private.reservation as r
            where r.scope = named.scope and r.key = named.key
            offset 0
        ) as found
        inner join (
            select p.name, p.max_claims from idem_private.policy as p
            union all
            select p.name, p.max_claims from idem_private.retired_policy as p
        ) as settings on found.policy = settings.name
        where (wanted_policy is null or found.policy = wanted_policy collate "C")
            and idem_private.is_lapsed(found.row_, at)
            and idem_private.may_claim(named.claims, settings.max_claims, named.claim_after, at)
        order by idem_private.lapsed_at(found.row_), named.scope, named.key;
        return;
    end if;

    -- The same, row by row: Citus knows no offset inside of a lateral join, and hands no whole row to a function.
    for named in
        select u.scope, u.key, u.claims, u.claim_after
        from idem_private.unfinished as u
        where (prefixes is null or idem_private.is_within(u.scope, prefixes))
            and (wanted_scope is null or u.scope = wanted_scope collate "C")
            and (wanted_key is null or u.key = wanted_key collate "C")
    loop
        found_keys := found_keys || named.key;
        select r.* into look
        from idem_private.reservation as r
        where r.scope = named.scope and r.key = named.key and r.completed_at is null;
        settings := idem_private.policy_of(look.policy);
        if idem_private.is_lapsed(look, at) and (wanted_policy is null or look.policy = wanted_policy collate "C")
            and idem_private.may_claim(named.claims, settings.max_claims, named.claim_after, at) then
            scope := named.scope;
            key := named.key;
            return next;
        end if;
    end loop;
    if wanted_scope is not null and wanted_key <> all(found_keys) then
        scope := wanted_scope;
        key := wanted_key;
        return next;
    end if;
end
$$;

comment on function idem_private.lapsed_keys(timestamptz, text[], text, text, text) is
'Keys that looked as if a resolver could claim them; on a Citus cluster in no order, and a key that is named in any case.';

revoke all on function idem_private.lapsed_keys(timestamptz, text[], text, text, text) from public;
