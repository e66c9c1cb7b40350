create type idem.response as (
    status int,
    headers jsonb,
    body bytea
);

comment on type idem.response is
'What a handler of idem.run returns. Headers are a JSON array of [name, value] pairs.';
