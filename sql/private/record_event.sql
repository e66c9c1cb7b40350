create or replace function idem_private.record_event(
    held idem_private.reservation, event text, at timestamptz, reason text, detail jsonb
) returns void
language sql volatile as $$
    insert into idem_private.event (scope, key, life, at, event, attempt, by_role, reason, detail)
    values (
        held.scope, held.key, held.created_at, record_event.at, record_event.event, held.attempt,
        idem_private.caller(), record_event.reason,
        nullif(
            jsonb_strip_nulls(
                coalesce(record_event.detail, '{}')
                || jsonb_build_object('session_user', nullif(session_user::text, idem_private.caller()::text))
            ),
            '{}'
        )
    )
$$;

comment on function idem_private.record_event(idem_private.reservation, text, timestamptz, text, jsonb) is
'Notes what the caller did to the row of a key that it holds locked; session_user is named where SET ROLE hides it.';

revoke all on function idem_private.record_event(
    idem_private.reservation, text, timestamptz, text, jsonb
) from public;
