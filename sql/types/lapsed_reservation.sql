create type idem.lapsed_reservation as (
    scope text,
    key text,
    token uuid,
    attempt int,
    downstream_key uuid,
    recovery_point text,
    state jsonb,
    policy text,
    created_at timestamptz,
    lapsed_at timestamptz,
    claims int,
    reason text
);

comment on type idem.lapsed_reservation is
'A lapsed key that idem.claim_lapsed has handed to a resolver, with the token to end it by.';
