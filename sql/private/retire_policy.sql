create or replace function idem_private.retire_policy() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if old.name in ('default', 'messages') then
        raise exception using
            errcode = '22023',
            message = format('policy %L belongs to pyidem and cannot be deleted', old.name),
            detail = jsonb_build_object('code', 'policy_shipped', 'policy', old.name)::text,
            hint = 'Update its columns instead.';
    end if;
    if exists (select from idem_private.reservation as r where r.policy = old.name) then
        raise exception using
            errcode = '23503',
            message = format('policy %L is in use', old.name),
            detail = jsonb_build_object('code', 'policy_in_use', 'policy', old.name)::text,
            hint = 'Keys remember their policy until they are purged. Let them expire first.';
    end if;
    insert into idem_private.retired_policy
    select p.* from idem_private.policy as p where p.name = old.name
    on conflict (name) do nothing;
    return old;
end
$$;

comment on function idem_private.retire_policy() is
'Refuses the deletion of a shipped policy, or of one in use; keeps the settings for a reservation under way.';

revoke all on function idem_private.retire_policy() from public;

create or replace trigger retire_policy before delete on idem_private.policy
for each row execute function idem_private.retire_policy();
