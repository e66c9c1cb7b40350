create or replace function idem.lookup(scope text, key text) returns idem.reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    found_row idem_private.reservation;
    settings idem_private.policy;
    answer idem.reservation;
    at timestamptz;
begin
    perform idem_private.check_scope(lookup.scope);
    perform idem_private.check_key(lookup.scope, lookup.key, 1, 1024, '');
    answer.outcome := 'absent';
    select r.* into found_row
    from idem_private.reservation as r
    where r.scope = lookup.scope collate "C" and r.key = lookup.key collate "C";
    if not found then
        return answer;
    end if;
    settings := idem_private.policy_of(found_row.policy);
    at := idem_private.clock();
    answer.outcome := idem_private.phase(found_row, settings.min_retention, settings.tombstone, at);
    if answer.outcome = 'absent' then
        return answer;
    end if;
    answer.attempt := found_row.attempt;
    answer.created_at := found_row.created_at;
    answer.completed_at := found_row.completed_at;
    answer.expires_at := coalesce(
        found_row.expired_at,
        idem_private.real_expiry(found_row.expires_at, found_row.completed_at, settings.min_retention)
    );
    if answer.outcome = 'completed' then
        answer.status := found_row.status;
        answer.headers := found_row.headers;
        answer.body := found_row.body;
    elsif answer.outcome in ('in_progress', 'lapsed') then
        answer.lease_until := found_row.lease_until;
    end if;
    return answer;
end
$$;

comment on function idem.lookup(text, text) is
'What is stored of a key, without touching it: absent, in_progress, lapsed, released, completed or expired; never a token. Takes no lock, sees committed rows only. Errors: IK001.';

revoke all on function idem.lookup(text, text) from public;
