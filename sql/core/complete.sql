-- A compare-and-set. It may wait for the row (a takeover, another completion); the conditions are then checked again on
-- the newest version, so a stale token changes nothing.
create or replace function idem.complete(
    scope text,
    key text,
    token uuid,
    status int default null,
    headers jsonb default null,
    body bytea default null
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    at timestamptz := idem_private.clock();
begin
    if not idem_private.headers_are_pairs(complete.headers) then
        perform idem_private.refuse_headers();
    end if;

    -- What this transaction has reserved nobody else can hold.
    update idem_private.reservation as r
    set
        completed_at = at,
        status = complete.status,
        headers = complete.headers,
        body = complete.body
    where r.scope = complete.scope collate "C" and r.key = complete.key collate "C" and r.token = complete.token
        and r.completed_at is null and not r.leased
        -- idem_private.owned_here, written out: Citus takes no function of columns that is not immutable in an update
        and r.owner_xid = pg_current_xact_id_if_assigned() and r.owned_at >= transaction_timestamp();
    if found then
        -- For idem_private.require_completion.
        complete.key := set_config(
            'idem_private.completed', complete.token || complete.scope || e'\n' || complete.key, true
        );
        return true;
    end if;

    perform idem_private.check_scope(complete.scope);
    -- Anything else may have to be waited for, and the clock is read after that.
    perform from idem_private.reservation as r
    where r.scope = complete.scope collate "C" and r.key = complete.key collate "C" and r.token = complete.token
        and r.completed_at is null and r.released_at is null
        and (
            not r.leased
            or not idem_private.owned_here(r.owner_xid, r.owned_at)
            or idem_private.single_transaction()
        )
    for update;
    if found then
        at := idem_private.clock();
        update idem_private.reservation as r
        set
            completed_at = at,
            status = complete.status,
            headers = complete.headers,
            body = complete.body
        where r.scope = complete.scope collate "C" and r.key = complete.key collate "C";
        delete from idem_private.unfinished as u
        where u.scope = complete.scope collate "C" and u.key = complete.key collate "C";
        perform idem_private.commit_durably();
        return true;
    end if;

    if exists (
        select from idem_private.reservation as r
        where r.scope = complete.scope collate "C" and r.key = complete.key collate "C" and r.token = complete.token
            and r.completed_at is not null
            and r.status is not distinct from complete.status
            and r.headers is not distinct from complete.headers
            and r.body is not distinct from complete.body
    ) then
        return false;
    end if;
    perform idem_private.refuse_owner_call(complete.scope, complete.key, complete.token, false);
    return null;
end
$$;

comment on function idem.complete(text, text, uuid, int, jsonb, bytea) is
'Stores the answer of a reservation and ends it. False: this token has stored exactly this before, in an earlier transaction; roll back the work done again. Headers are a JSON array of [name, value] pairs. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.complete(text, text, uuid, int, jsonb, bytea) from public;
