create type idem.reservation as (
    outcome text,
    token uuid,
    attempt int,
    downstream_key uuid,
    recovery_point text,
    state jsonb,
    status int,
    headers jsonb,
    body bytea,
    mismatched text[],
    retry_after interval,
    created_at timestamptz,
    lease_until timestamptz,
    completed_at timestamptz,
    expires_at timestamptz
);

comment on type idem.reservation is
'What became of a (scope, key): the answer of reserve and lookup. Token, downstream_key, recovery_point and state come only with outcome started; status, headers and body only with a completed one.';
