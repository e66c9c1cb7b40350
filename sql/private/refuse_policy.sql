create or replace function idem_private.refuse_policy(name text) returns void
language plpgsql stable as $$
begin
    raise exception using
        errcode = 'IK006',
        message = format('there is no policy %L', left(refuse_policy.name, 100)),
        detail = jsonb_build_object('code', 'no_such_policy', 'policy', left(refuse_policy.name, 100))::text,
        hint = 'The view idem.policies lists the policies; insert a row there to add one.';
end
$$;

comment on function idem_private.refuse_policy(text) is 'Raises IK006.';

revoke all on function idem_private.refuse_policy(text) from public;
