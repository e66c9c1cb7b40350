-- The trigger of the view idem.policies on a Citus cluster, where idem_private.policy has none: see idem.distribute.
-- What is written is judged and made exact by the trigger of the draft, which is an ordinary table.
create or replace function idem_private.write_policy() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    written idem_private.policy;
begin
    if tg_op = 'DELETE' then
        delete from idem_private.policy as p where p.name = old.name;
        return old;
    end if;
    if tg_op = 'UPDATE' and new.name is distinct from old.name then
        raise exception using
            errcode = '22023',
            message = format('policy %L: a policy cannot be renamed, its keys remember it', left(old.name, 100)),
            detail = jsonb_build_object('code', 'policy_invalid', 'column', 'name')::text,
            hint = 'The columns of idem.policies are described in the SQL reference.';
    end if;
    insert into idem_private.policy_draft select new.*, false returning * into written;
    delete from idem_private.policy_draft;
    if tg_op = 'UPDATE' then
        delete from idem_private.policy as p where p.name = new.name;
    end if;
    insert into idem_private.policy select written.*;
    return new;
end
$$;

comment on function idem_private.write_policy() is 'Writes a policy on a Citus cluster.';

revoke all on function idem_private.write_policy() from public;
