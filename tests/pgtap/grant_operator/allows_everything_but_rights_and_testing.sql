begin;
select plan(5);

create role idem_ops;
select idem.grant_operator('idem_ops');

select set_eq(
    $$
        select proname::text from pg_proc
        where pronamespace = 'idem'::regnamespace and not has_function_privilege('idem_ops', oid, 'execute')
    $$,
    $$
        select proname::text from pg_proc
        where pronamespace = 'idem'::regnamespace
            and (
                proname like 'grant\_%'
                or proname in ('revoke_access', 'bind_scope', 'unbind_scope', 'enable_testing', 'disable_testing')
            )
    $$,
    'all but these calls'
);
select is_empty(
    $$
        select oid::regclass from pg_class
        where relnamespace = 'idem_private'::regnamespace and relkind in ('r', 'v', 'S')
            and has_table_privilege('idem_ops', oid, 'select, insert, update, delete, truncate')
    $$,
    'no table'
);
select is(has_schema_privilege('idem_ops', 'idem', 'create'), false, 'nothing can be created among the API');
select is(has_schema_privilege('idem_ops', 'idem_private', 'usage, create'), false, 'the private schema stays closed');

set local role idem_ops;
select lives_ok(
    $$
        insert into idem.policies (name, lease) values ('slow', '5 minutes')
        on conflict (name) do update set lease = excluded.lease;
        update idem.policies set on_lapse = 'retry' where name = 'slow';
        delete from idem.policies where name = 'slow'
    $$,
    'policies can be changed'
);
reset role;

select * from finish();
rollback;
