-- What a status means is decided here, and done by complete, release and defer. The row is read without a lock: the
-- mode of a token never changes, and each of them is compare-and-set on it; nor does it change whether a resolver has
-- claimed what the token owns.
create or replace function idem.http_complete(
    scope text,
    key text,
    token uuid,
    status int,
    headers jsonb default null,
    body bytea default null
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held_leased boolean;
    held_policy text;
    settings idem_private.policy;
begin
    perform idem_private.check_scope(http_complete.scope);
    perform idem_private.check_answer(http_complete.status, http_complete.headers);
    if http_complete.key is null and http_complete.token is null then
        return 'unprotected';
    end if;
    select r.leased, r.policy into held_leased, held_policy
    from idem_private.reservation as r
    where r.scope = http_complete.scope collate "C" and r.key = http_complete.key collate "C"
        and r.token = http_complete.token;
    if not found then
        perform idem_private.refuse_owner_call(http_complete.scope, http_complete.key, http_complete.token, false);
    end if;
    settings := idem_private.policy_of(held_policy);

    if settings.profile <> 'stripe' then
        if http_complete.status = any(settings.release_statuses) and not exists (
            -- A resolver was rejected by this status, which says nothing about the attempt that it asks for.
            select from idem_private.unfinished as u
            where u.scope = http_complete.scope collate "C" and u.key = http_complete.key collate "C" and u.claims > 0
        ) then
            if not held_leased then
                return 'rollback';
            end if;
            perform idem.release(http_complete.scope, http_complete.key, http_complete.token);
            return 'released';
        elsif http_complete.status = 408 or http_complete.status >= 500
            or http_complete.status = any(settings.release_statuses) then
            if not held_leased then
                return 'rollback';
            end if;
            perform idem.defer(
                http_complete.scope, http_complete.key, http_complete.token,
                reason => format('HTTP status %s', http_complete.status)
            );
            return 'deferred';
        end if;
    end if;

    if octet_length(http_complete.body) > settings.max_body_bytes
        or (http_complete.body is null and exists (
            select from jsonb_array_elements(http_complete.headers) as h (pair)
            where lower((h.pair ->> 0) collate "C") = 'idempotency-body-omitted'
        )) then
        http_complete.body := null;
        http_complete.headers := coalesce(idem_private.stored_headers(http_complete.headers, settings), '[]')
            || '[["Idempotency-Body-Omitted", "true"]]';
    else
        http_complete.headers := idem_private.stored_headers(http_complete.headers, settings);
    end if;
    if idem.complete(
        http_complete.scope, http_complete.key, http_complete.token, http_complete.status, http_complete.headers,
        http_complete.body
    ) then
        return 'stored';
    end if;
    return 'repeated';
end
$$;

comment on function idem.http_complete(text, text, uuid, int, jsonb, bytea) is
'Ends a reservation of http_reserve by the answer that is sent: stored, released, deferred, repeated (roll back), rollback (roll back) or unprotected. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.http_complete(text, text, uuid, int, jsonb, bytea) from public;
