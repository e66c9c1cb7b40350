create or replace function idem_private.replay_header(settings idem_private.policy) returns text
language sql immutable as $$
    select
        coalesce(
            settings.replay_header,
            case settings.profile when 'stripe' then 'Idempotent-Replayed' else 'Idempotency-Replayed' end
        )
$$;

comment on function idem_private.replay_header(idem_private.policy) is 'Name of the header that marks a replay.';

revoke all on function idem_private.replay_header(idem_private.policy) from public;
