-- All rows of a scope are on one node, and so is every call on one of its keys: also inside a transaction, since the
-- check of what a transaction has reserved itself goes by its id, which is another one on each node.
--
-- Citus runs no triggers on such tables. What they do for policies and bindings is done by the view idem.policies and
-- by idem.bind_scope instead; what they do at commit nobody does, and a row that was left unfinished is unresolved.
create or replace function idem.distribute() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    distributed constant regclass[] := array[
        'idem_private.reservation', 'idem_private.unfinished', 'idem_private.event'
    ]::regclass[];
    everywhere constant regclass[] := array[
        'idem_private.policy', 'idem_private.retired_policy', 'idem_private.secret', 'idem_private.scope_binding',
        'idem_private.testing'
    ]::regclass[];
    part record;
begin
    perform idem_private.refuse_without_citus();
    if idem_private.is_distributed() then
        return;
    end if;
    -- Tables and functions in one transaction: Citus asks for it.
    perform set_config('citus.multi_shard_modify_mode', 'sequential', true);

    for part in
        select t.tgname as name, t.tgrelid::regclass as table_
        from pg_catalog.pg_trigger as t
        where t.tgrelid = any(distributed || everywhere) and not t.tgisinternal
        order by t.tgname
    loop
        execute format('drop trigger %I on %s', part.name, part.table_);
    end loop;
    execute 'create table idem_private.policy_draft (like idem_private.policy including defaults)';
    execute
        'create trigger check_policy before insert on idem_private.policy_draft
        for each row execute function idem_private.check_policy()';
    execute
        'create trigger check_whole_policy after insert on idem_private.policy_draft
        for each row execute function idem_private.check_whole_policy()';
    execute
        'create trigger revive_policy after insert on idem_private.policy_draft
        for each row execute function idem_private.revive_policy()';
    execute
        'create trigger retire_policy instead of delete on idem.policies
        for each row execute function idem_private.retire_policy()';
    execute
        'create trigger write_policy instead of insert or update or delete on idem.policies
        for each row execute function idem_private.write_policy()';
    for part in
        select c.attname as name, pg_get_expr(d.adbin, d.adrelid) as value
        from pg_catalog.pg_attrdef as d
        inner join pg_catalog.pg_attribute as a on d.adrelid = a.attrelid and d.adnum = a.attnum
        inner join pg_catalog.pg_attribute as c on c.attrelid = 'idem.policies'::regclass and a.attname = c.attname
        where d.adrelid = 'idem_private.policy'::regclass
        order by c.attnum
    loop
        execute format('alter view idem.policies alter column %I set default %s', part.name, part.value);
    end loop;

    execute 'select pg_catalog.create_reference_table(t.name) from unnest($1) as t (name)' using everywhere;
    execute
        'select pg_catalog.create_distributed_table(
            t.name, ''scope'',
            colocate_with => case t.place when 1 then ''none'' else ''idem_private.reservation'' end
        )
        from unnest($1) with ordinality as t (name, place)
        order by t.place'
    using distributed;

    -- What is called for one key, wherever it is called, and what that calls. A function that takes or returns a row of
    -- another table is for the coordinator alone, and so is idem.run, whose handler is.
    for part in
        select
            p.oid::regprocedure as function,
            n.nspname = 'idem' and p.proargnames[1] = 'scope' and p.proname <> 'run' as delegated
        from pg_catalog.pg_proc as p
        inner join pg_catalog.pg_namespace as n on p.pronamespace = n.oid
        where n.nspname in ('idem', 'idem_private') and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype
            and not exists (
                select from pg_catalog.pg_type as t
                inner join pg_catalog.pg_class as c on t.typrelid = c.oid and c.relkind = 'r'
                where t.oid = any(coalesce(p.proallargtypes, p.proargtypes::oid[]) || p.prorettype)
                    and c.oid <> all(distributed || everywhere)
            )
        order by 1
    loop
        if part.delegated then
            execute
                'select pg_catalog.create_distributed_function(
                    $1, distribution_arg_name => ''scope'', colocate_with => ''idem_private.reservation'',
                    force_delegation => true
                )'
            using part.function;
        else
            execute 'select pg_catalog.create_distributed_function($1)' using part.function;
        end if;
    end loop;
    perform idem_private.record_objects();
end
$$;

comment on function idem.distribute() is
'Spreads keys over the workers of a Citus cluster by their scope, with the functions that work on them; on the coordinator, once, while nobody reserves. Repeated, it does nothing. Errors: 0A000.';

revoke all on function idem.distribute() from public;
