-- An attempt at a key whose row was seen a moment ago. Null: the row has gone, look again.
--
-- What needs no write is answered from a plain read. A write first takes the row lock, without waiting: who holds it
-- may be its owner completing, another attempt taking over, or purge; then the row is read once more, and if it still
-- cannot be answered from a read, somebody is at work on it. With the lock the newest version is judged again, since
-- the one read before may be gone. (Under REPEATABLE READ the lock of a row changed since raises 40001.)
create or replace function idem_private.reserve_existing(
    scope text,
    key text,
    fingerprint bytea,
    fields jsonb,
    policy text,
    ttl interval,
    leased boolean,
    lease interval,
    default_lease interval,
    state jsonb,
    token uuid
) returns idem.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    found_row idem_private.reservation;
    settings idem_private.policy;
    at timestamptz;
    verdict text;
    held boolean := false;
begin
    select r.* into found_row
    from idem_private.reservation as r
    where r.scope = reserve_existing.scope collate "C" and r.key = reserve_existing.key collate "C";
    if not found then
        return null;
    end if;
    settings := idem_private.policy_of(found_row.policy);
    at := idem_private.clock();
    verdict := idem_private.judge(found_row, settings, reserve_existing.fingerprint, reserve_existing.token, at);

    if verdict in ('take', 'renew')
        -- A snapshot older than this moment could show a lapse that a heartbeat has ended: the lock tells.
        or (verdict = 'unresolved' and current_setting('transaction_isolation') <> 'read committed') then
        select r.* into found_row
        from idem_private.reservation as r
        where r.scope = reserve_existing.scope collate "C" and r.key = reserve_existing.key collate "C"
        for update skip locked;
        held := found;
        if not held then
            select r.* into found_row
            from idem_private.reservation as r
            where r.scope = reserve_existing.scope collate "C" and r.key = reserve_existing.key collate "C";
            if not found then
                return null;
            end if;
        end if;
        settings := idem_private.policy_of(found_row.policy);
        at := idem_private.clock();
        verdict := idem_private.judge(found_row, settings, reserve_existing.fingerprint, reserve_existing.token, at);
        if reserve_existing.leased and not (held and verdict in ('take', 'renew')) then
            perform idem_private.note_unchanged(reserve_existing.scope, reserve_existing.key, held);
        end if;
        if verdict in ('take', 'renew') and not held then
            return idem_private.busy(settings.retry_after);
        end if;
    end if;
    if verdict not in ('take', 'renew') then
        return idem_private.answer(
            verdict, found_row, settings.min_retention, settings.retry_after, reserve_existing.fields, at
        );
    end if;

    if verdict = 'renew' then
        if found_row.leased <> reserve_existing.leased then
            raise exception using
                errcode = 'IK004',
                message = 'this token owns the reservation in the other mode',
                detail = jsonb_build_object(
                    'code', 'other_mode', 'mode', case when found_row.leased then 'leased' else 'atomic' end
                )::text,
                hint = 'Repeat reserve with the mode of the first call.';
        end if;
        if found_row.leased then
            found_row := idem_private.renew_lease(found_row, reserve_existing.lease);
        end if;
    elsif found_row.completed_at is null then
        found_row := idem_private.take_over(
            found_row,
            reserve_existing.leased,
            case when reserve_existing.leased then coalesce(reserve_existing.lease, settings.lease) end,
            reserve_existing.state,
            reserve_existing.token
        );
    else
        found_row := idem_private.replace_expired(
            found_row,
            reserve_existing.fingerprint,
            reserve_existing.fields,
            reserve_existing.policy,
            reserve_existing.ttl,
            reserve_existing.leased,
            case when reserve_existing.leased
                then coalesce(reserve_existing.lease, reserve_existing.default_lease)
            end,
            reserve_existing.state,
            reserve_existing.token,
            null
        );
    end if;
    if found_row.leased then
        perform idem_private.note_leased(found_row.scope, found_row.key, verdict = 'renew');
    else
        delete from idem_private.unfinished as u where u.scope = found_row.scope and u.key = found_row.key;
    end if;
    return idem_private.started(found_row);
end
$$;

comment on function idem_private.reserve_existing(
    text, text, bytea, jsonb, text, interval, boolean, interval, interval, jsonb, uuid
) is 'Outcome of reserve for a key that has a row, or null if the row has gone meanwhile.';

revoke all on function idem_private.reserve_existing(
    text, text, bytea, jsonb, text, interval, boolean, interval, interval, jsonb, uuid
) from public;
