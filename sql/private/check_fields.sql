create or replace function idem_private.check_fields(fields jsonb) returns void
language plpgsql immutable as $$
declare
    max_fields constant int := 1000;
begin
    if jsonb_typeof(check_fields.fields) <> 'object' then
        raise exception using
            errcode = '22023',
            message = 'fields must be a JSON object',
            detail = jsonb_build_object('code', 'fields_not_an_object', 'argument', 'fields')::text,
            hint = 'It maps the name of each part of the request to a short hash of its value.';
    -- of a body; what http_reserve adds of the request does not count
    elsif (
        select count(*) from jsonb_object_keys(check_fields.fields) as f (name)
        where f.name not in ('method', 'path', 'content_type')
    ) > max_fields then
        raise exception using
            errcode = 'IK007',
            message = 'too many fields',
            detail = jsonb_build_object('code', 'too_many_fields', 'argument', 'fields', 'limit', max_fields)::text,
            hint = 'Leave fields out: the fingerprint alone decides, fields only name what differs.';
    end if;
end
$$;

comment on function idem_private.check_fields(jsonb) is 'Raises unless fields is an object of at most 1000 members.';

revoke all on function idem_private.check_fields(jsonb) from public;
