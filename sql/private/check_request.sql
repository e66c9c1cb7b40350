create or replace function idem_private.check_request(method text, path text) returns void
language plpgsql immutable as $$
begin
    if check_request.method is null or check_request.path is null then
        raise exception using
            errcode = '22023',
            message = 'a request has a method and a path',
            detail = jsonb_build_object(
                'code', 'null', 'argument', case when check_request.method is null then 'method' else 'path' end
            )::text,
            hint = 'Pass the request target as it was received, with its query.';
    end if;
end
$$;

comment on function idem_private.check_request(text, text) is 'Raises 22023 where method or path is null.';

revoke all on function idem_private.check_request(text, text) from public;
