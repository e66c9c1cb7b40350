create or replace function idem_private.check_answer(status int, headers jsonb) returns void
language plpgsql immutable as $$
begin
    if coalesce(check_answer.status not between 100 and 999, true) then
        raise exception using
            errcode = '22023',
            message = 'the status of an answer has three digits',
            detail = jsonb_build_object('code', 'status_out_of_range', 'argument', 'status')::text,
            hint = 'Pass the HTTP status that is sent, from 100 to 999.';
    end if;
    if not idem_private.headers_are_pairs(check_answer.headers) then
        perform idem_private.refuse_headers();
    end if;
    if jsonb_path_exists(
        check_answer.headers,
        'strict $[*] ? (!(@[0] like_regex "^[-!#$%&''*+.^_`|~0-9A-Za-z]+$") || @[1] like_regex "[\r\n]")'
    ) then
        raise exception using
            errcode = '22023',
            message = 'a header cannot be sent',
            detail = jsonb_build_object('code', 'header_unfit', 'argument', 'headers')::text,
            hint = 'The name of a header is a token (RFC 9110), and its value has no line breaks.';
    end if;
end
$$;

comment on function idem_private.check_answer(int, jsonb) is 'Raises 22023 for an answer that HTTP cannot carry.';

revoke all on function idem_private.check_answer(int, jsonb) from public;
