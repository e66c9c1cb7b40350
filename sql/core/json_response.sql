create or replace function idem.json_response(
    status int, body json, headers jsonb default null
) returns idem.response
language plpgsql immutable security definer set search_path = pg_catalog, pg_temp as $$
begin
    json_response.headers := coalesce(json_response.headers, '[]');
    if not idem_private.headers_are_pairs(json_response.headers) then
        perform idem_private.refuse_headers();
    end if;
    if json_response.body is not null
        and not jsonb_path_exists(json_response.headers, '$[*][0] ? (@ like_regex "^content-type$" flag "i")') then
        json_response.headers := '[["content-type", "application/json"]]' || json_response.headers;
    end if;
    return row(
        json_response.status, json_response.headers, convert_to(json_response.body::text, 'UTF8')
    )::idem.response;
end
$$;

comment on function idem.json_response(int, json, jsonb) is
'A response whose body is this JSON text in UTF-8, as it is written; its content type is added unless given. A null body is none, and has no type. Errors: 22023.';

revoke all on function idem.json_response(int, json, jsonb) from public;
