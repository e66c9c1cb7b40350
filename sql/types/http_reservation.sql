create type idem.http_reservation as (
    outcome text,
    key text,
    token uuid,
    attempt int,
    downstream_key uuid,
    recovery_point text,
    state jsonb,
    status int,
    headers jsonb,
    body bytea
);

comment on type idem.http_reservation is
'What http_reserve answers. Status null: do the work. Otherwise status, headers and body are the complete answer to send.';
