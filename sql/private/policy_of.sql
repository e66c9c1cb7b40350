create or replace function idem_private.policy_of(name text) returns idem_private.policy
language plpgsql stable as $$
declare
    settings idem_private.policy;
begin
    select p.* into settings from idem_private.policy as p where p.name = policy_of.name collate "C";
    if not found then
        select p.* into settings from idem_private.retired_policy as p where p.name = policy_of.name collate "C";
    end if;
    return settings;
end
$$;

comment on function idem_private.policy_of(text) is 'The settings of a stored row, also of a policy deleted since.';

revoke all on function idem_private.policy_of(text) from public;
