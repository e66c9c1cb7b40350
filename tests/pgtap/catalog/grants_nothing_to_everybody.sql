begin;
select plan(3);

create role idem_stranger;

select is_empty(
    $$
        select oid::regprocedure from pg_proc
        where pronamespace in ('idem'::regnamespace, 'idem_private'::regnamespace)
            and has_function_privilege('idem_stranger', oid, 'execute')
    $$,
    'no function'
);
select is_empty(
    $$
        select oid::regclass from pg_class
        where relnamespace in ('idem'::regnamespace, 'idem_private'::regnamespace) and relkind in ('r', 'v', 'S')
            and has_table_privilege(
                'idem_stranger', oid, 'select, insert, update, delete, truncate, references, trigger'
            )
    $$,
    'no table, no view'
);
select is_empty(
    $$
        select nspname from pg_namespace
        where nspname in ('idem', 'idem_private') and has_schema_privilege('idem_stranger', oid, 'usage, create')
    $$,
    'no schema'
);

select * from finish();
rollback;
