create or replace function idem_private.check_call(scope text, key text, policy text) returns void
language plpgsql stable as $$
#variable_conflict use_column
declare
    settings idem_private.policy;
begin
    select p.* into settings
    from idem_private.policy as p
    where p.name = coalesce(check_call.policy, 'default') collate "C";
    if not found then
        raise exception using
            errcode = 'IK006',
            message = format('there is no policy %L', left(check_call.policy, 100)),
            detail = jsonb_build_object('code', 'no_such_policy', 'policy', left(check_call.policy, 100))::text,
            hint = 'The view idem.policies lists the policies; insert a row there to add one.';
    end if;
    perform idem_private.check_key(
        check_call.scope, check_call.key, settings.key_min_length, settings.key_max_length, settings.key_pattern
    );
end
$$;

comment on function idem_private.check_call(text, text, text) is
'Raises IK006 for an unknown policy, IK001 for a scope or key that is not acceptable under it.';

revoke all on function idem_private.check_call(text, text, text) from public;
