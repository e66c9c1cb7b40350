create or replace function idem_private.check_headers(headers jsonb) returns void
language plpgsql immutable as $$
begin
    if jsonb_typeof(check_headers.headers) = 'array' and not exists (
        select from jsonb_array_elements(check_headers.headers) as pair
        where jsonb_typeof(pair.value) <> 'array'
            or jsonb_array_length(case when jsonb_typeof(pair.value) = 'array' then pair.value else '[]' end) <> 2
            or jsonb_typeof(pair.value -> 0) <> 'string'
            or jsonb_typeof(pair.value -> 1) <> 'string'
    ) then
        return;
    end if;
    raise exception using
        errcode = '22023',
        message = 'headers must be a JSON array of [name, value] pairs of strings',
        detail = jsonb_build_object('code', 'headers_not_pairs', 'argument', 'headers')::text,
        hint = 'For example [["content-type", "application/json"]]: order and repeats are kept.';
end
$$;

comment on function idem_private.check_headers(jsonb) is 'Raises 22023 unless headers is an array of pairs of strings.';

revoke all on function idem_private.check_headers(jsonb) from public;
