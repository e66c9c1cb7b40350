create or replace function idem_private.answer(
    outcome text,
    row_ idem_private.reservation,
    min_retention interval,
    policy_wait interval,
    fields jsonb,
    at timestamptz
) returns idem.reservation
language plpgsql stable as $$
begin
    if answer.outcome = 'replay' then
        return row(
            'replay', null, row_.attempt, null, null, null, row_.status, row_.headers, row_.body, null, null,
            row_.created_at, null, row_.completed_at,
            idem_private.real_expiry(row_.expires_at, row_.completed_at, answer.min_retention)
        )::idem.reservation;
    end if;
    return row(
        answer.outcome, null, row_.attempt, null, null, null, null, null, null,
        case
            when answer.outcome = 'mismatch' and row_.fields is not null and answer.fields is not null
                then idem_private.mismatched_fields(row_.fields, answer.fields)
        end,
        case
            when answer.outcome in ('in_progress', 'unresolved')
                then idem_private.retry_after(answer.policy_wait, row_.lease_until - answer.at)
        end,
        row_.created_at,
        case when answer.outcome in ('in_progress', 'unresolved') then row_.lease_until end,
        case when answer.outcome = 'expired' then row_.completed_at end,
        case
            when answer.outcome <> 'mismatch'
                then coalesce(
                    row_.expired_at,
                    idem_private.real_expiry(row_.expires_at, row_.completed_at, answer.min_retention)
                )
        end
    )::idem.reservation;
end
$$;

comment on function idem_private.answer(
    text, idem_private.reservation, interval, interval, jsonb, timestamptz
) is 'What reserve tells anybody but the owner of a row.';

revoke all on function idem_private.answer(
    text, idem_private.reservation, interval, interval, jsonb, timestamptz
) from public;
