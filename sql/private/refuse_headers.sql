create or replace function idem_private.refuse_headers() returns void
language plpgsql stable as $$
begin
    raise exception using
        errcode = '22023',
        message = 'headers must be a JSON array of [name, value] pairs of strings',
        detail = jsonb_build_object('code', 'headers_not_pairs', 'argument', 'headers')::text,
        hint = 'For example [["content-type", "application/json"]]: order and repeats are kept.';
end
$$;

comment on function idem_private.refuse_headers() is 'Raises 22023.';

revoke all on function idem_private.refuse_headers() from public;
