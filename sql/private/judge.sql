-- The one place that decides what an existing row means to an attempt, in every state, before and after it is locked.
-- 'take' and 'renew' say what reserve may do once it holds the row. The fingerprint comes first: whatever the state,
-- another request learns nothing but that it is another.
create or replace function idem_private.judge(
    row_ idem_private.reservation,
    settings idem_private.policy,
    fingerprint bytea,
    token uuid,
    at timestamptz
) returns text
language sql stable as $$
    select
        case
            when row_.fingerprint is distinct from fingerprint
                and idem_private.phase(row_, settings.min_retention, settings.tombstone, at) <> 'absent' then 'mismatch'
            else
                case idem_private.phase(row_, settings.min_retention, settings.tombstone, at)
                    when 'completed' then 'replay'
                    when 'expired' then 'expired'
                    when 'in_progress' then case when row_.token = token then 'renew' else 'in_progress' end
                    when 'lapsed' then
                        case
                            when not row_.leased then 'unresolved'
                            when row_.token = token then 'renew'
                            when settings.on_lapse = 'retry'
                                and row_.attempt < coalesce(settings.max_attempts, 2147483647) then 'take'
                            else 'unresolved'
                        end
                    else 'take'
                end
        end
$$;

comment on function idem_private.judge(
    idem_private.reservation, idem_private.policy, bytea, uuid, timestamptz
) is 'Outcome of reserve for an existing row, or take or renew where the caller may have it.';

revoke all on function idem_private.judge(
    idem_private.reservation, idem_private.policy, bytea, uuid, timestamptz
) from public;
