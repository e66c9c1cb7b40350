-- The one place that decides what an existing row means to an attempt. It writes nothing; 'take' and 'renew' say
-- what reserve may do once it holds the row locked.
create or replace function idem_private.judge(
    row_ idem_private.reservation, settings idem_private.policy, fingerprint bytea, fields jsonb, token uuid
) returns idem.reservation
language plpgsql volatile as $$
declare
    at constant timestamptz := idem_private.clock();
    phase constant text := idem_private.phase(row_, settings.min_retention, settings.tombstone, at);
    answer idem.reservation;
begin
    if phase = 'absent' then
        answer.outcome := 'take';
        return answer;
    end if;

    answer.attempt := row_.attempt;
    answer.created_at := row_.created_at;
    -- Compared in every state, before anything else is told.
    if row_.fingerprint is distinct from judge.fingerprint then
        answer.outcome := 'mismatch';
        if row_.fields is not null and judge.fields is not null then
            answer.mismatched := idem_private.mismatched_fields(row_.fields, judge.fields);
        end if;
        return answer;
    end if;

    if phase in ('completed', 'expired') then
        answer.outcome := case phase when 'completed' then 'replay' else 'expired' end;
        answer.completed_at := row_.completed_at;
        answer.expires_at := idem_private.real_expiry(row_.expires_at, row_.completed_at, settings.min_retention);
        if phase = 'completed' then
            answer.status := row_.status;
            answer.headers := row_.headers;
            answer.body := row_.body;
        end if;
        return answer;
    end if;

    if phase = 'released' then
        answer.outcome := 'take';
    elsif row_.token = judge.token and (phase = 'in_progress' or row_.leased) then
        answer.outcome := 'renew';
    elsif phase = 'in_progress' then
        answer.outcome := 'in_progress';
    elsif row_.leased and settings.on_lapse = 'retry'
        and row_.attempt < coalesce(settings.max_attempts, 2147483647) then
        answer.outcome := 'take';
    else
        answer.outcome := 'unresolved';
    end if;
    answer.lease_until := row_.lease_until;
    answer.expires_at := row_.expires_at;
    answer.retry_after := idem_private.retry_after(settings.retry_after, row_.lease_until - at);
    return answer;
end
$$;

comment on function idem_private.judge(
    idem_private.reservation, idem_private.policy, bytea, jsonb, uuid
) is 'Outcome of reserve for an existing row, or take or renew where the caller may have it.';

revoke all on function idem_private.judge(
    idem_private.reservation, idem_private.policy, bytea, jsonb, uuid
) from public;
