create or replace function idem_private.refuse_policy(name text, problem text) returns void
language plpgsql stable as $$
begin
    raise exception using
        errcode = '22023',
        message = format('policy %L: %s', left(refuse_policy.name, 100), refuse_policy.problem),
        detail = jsonb_build_object(
            'code', 'policy_invalid', 'column', split_part(refuse_policy.problem, ':', 1)
        )::text,
        hint = 'The columns of idem.policies are described in the SQL reference.';
end
$$;

comment on function idem_private.refuse_policy(text, text) is
'Raises 22023 for a policy that cannot work; the problem begins with its column.';

revoke all on function idem_private.refuse_policy(text, text) from public;
