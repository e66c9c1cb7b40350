create or replace function idem_private.check_resolution(
    scope text, key text, action text, reason text, status int, headers jsonb, body bytea
) returns void
language plpgsql stable as $$
begin
    perform idem_private.check_key(check_resolution.scope, check_resolution.key, 1, 1024, '');
    if check_resolution.action is null or check_resolution.action not in ('complete', 'release', 'retry') then
        raise exception using
            errcode = '22023',
            message = 'unknown action',
            detail = jsonb_build_object('code', 'unknown_action', 'argument', 'action')::text,
            hint = 'The actions are complete, release and retry.';
    elsif coalesce(check_resolution.reason, '') collate "C" !~ '\S' then
        raise exception using
            errcode = '22023',
            message = 'a reason is needed',
            detail = jsonb_build_object('code', 'reason_missing', 'argument', 'reason')::text,
            hint = 'Say how you know what happened; it is recorded together with your role.';
    elsif check_resolution.action <> 'complete' and (
        check_resolution.status is not null or check_resolution.headers is not null
        or check_resolution.body is not null
    ) then
        raise exception using
            errcode = '22023',
            message = 'an answer goes with action complete',
            detail = jsonb_build_object('code', 'answer_without_complete', 'argument', 'action')::text,
            hint = 'After release and retry the next attempt will give the answer.';
    elsif not idem_private.headers_are_pairs(check_resolution.headers) then
        perform idem_private.refuse_headers();
    end if;
end
$$;

comment on function idem_private.check_resolution(text, text, text, text, int, jsonb, bytea) is
'Raises IK001 or 22023 where an operator''s decision makes no sense.';

revoke all on function idem_private.check_resolution(text, text, text, text, int, jsonb, bytea) from public;
