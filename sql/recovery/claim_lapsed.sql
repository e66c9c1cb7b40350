-- What the look has found may be locked by its owner, or gone, or alive again. So each row is locked only where it can
-- be at once, and only if its newest version is lapsed by the clock at that moment; the list is read again under the
-- lock.
create or replace function idem.claim_lapsed(
    max_rows int default 10,
    lease interval default null,
    policy text default null,
    scope text default null,
    key text default null
) returns setof idem.lapsed_reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    at timestamptz := idem_private.clock();
    left_over int := coalesce(claim_lapsed.max_rows, 10);
    look record;
    held idem_private.reservation;
    noted idem_private.unfinished;
    settings idem_private.policy;
    prefixes constant text[] := idem_private.bound_prefixes();
begin
    perform idem_private.check_scope(claim_lapsed.scope);
    claim_lapsed.lease := idem_private.check_interval('lease', claim_lapsed.lease);
    perform idem_private.check_claim(left_over, claim_lapsed.policy, claim_lapsed.scope, claim_lapsed.key);

    for look in
        select k.scope, k.key
        from idem_private.lapsed_keys(at, prefixes, claim_lapsed.policy, claim_lapsed.scope, claim_lapsed.key) as k
    loop
        exit when left_over = 0;
        begin
            select r.* into held
            from idem_private.reservation as r
            where r.scope = look.scope and r.key = look.key and r.completed_at is null and r.released_at is null
                -- idem_private.phase, written out: Citus hands no whole row to a function
                and case
                    when r.leased then r.lease_until <= idem_private.clock()
                    else not idem_private.owned_here(r.owner_xid, r.owned_at)
                end
            for update skip locked;
            continue when not found;
            settings := idem_private.policy_of(held.policy);
            at := idem_private.clock();
            select u.* into noted
            from idem_private.unfinished as u
            where u.scope = held.scope and u.key = held.key;
            continue when not idem_private.may_claim(
                coalesce(noted.claims, 0), settings.max_claims, noted.claim_after, at
            );
            return next idem_private.claim(held, coalesce(claim_lapsed.lease, settings.lease), at);
            left_over := left_over - 1;
        exception when others then
            -- A bad row would keep resolvers from all others for ever. What is wrong with the moment or with the whole
            -- server, and not with the row, is raised.
            if sqlstate ~ '^(25|40|53|55|57|58)' then
                raise;
            end if;
            raise warning using
                message = 'a lapsed key cannot be claimed',
                detail = jsonb_build_object(
                    'code', 'not_claimed', 'scope', look.scope, 'key', look.key, 'sqlstate', sqlstate
                )::text,
                hint = 'Other keys are not affected. Find out what raises this SQLSTATE when its row is written.';
        end;
    end loop;
end
$$;

comment on function idem.claim_lapsed(int, interval, text, text, text) is
'Hands lapsed keys to a resolver, the longest lapsed first: each with a new token and lease, to be ended by complete, release or defer after finding out what happened. Skips what others hold, what asked for a delay, and what has been claimed max_claims times. Errors: IK001, IK006, 22023, 42501.';

revoke all on function idem.claim_lapsed(int, interval, text, text, text) from public;
