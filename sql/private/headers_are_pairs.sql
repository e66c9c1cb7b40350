create or replace function idem_private.headers_are_pairs(headers jsonb) returns boolean
language sql immutable as $$
    select jsonb_typeof(headers) = 'array' and not jsonb_path_exists(
        headers,
        'strict $[*] ? (
            !(@.type() == "array") || !(@.size() == 2) || !(@[0].type() == "string") || !(@[1].type() == "string")
        )'
    )
$$;

comment on function idem_private.headers_are_pairs(jsonb) is
'Whether headers are an array of [name, value] pairs of strings; null is not.';

revoke all on function idem_private.headers_are_pairs(jsonb) from public;
