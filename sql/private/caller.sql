-- Inside a SECURITY DEFINER function current_user is the owner; the setting role still holds what SET ROLE took on.
create or replace function idem_private.caller() returns name
language sql stable as $$
    select coalesce(nullif(current_setting('role'), 'none'), session_user)::name
$$;

comment on function idem_private.caller() is 'The role that the caller acts as.';

revoke all on function idem_private.caller() from public;
