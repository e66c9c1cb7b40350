create or replace function idem_private.revive_policy() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from idem_private.retired_policy as p where p.name = new.name;
    return null;
end
$$;

comment on function idem_private.revive_policy() is 'A policy made again under an old name replaces the retired one.';

revoke all on function idem_private.revive_policy() from public;

create or replace trigger revive_policy after insert on idem_private.policy
for each row execute function idem_private.revive_policy();
