begin;
select plan(5);

create role idem_sweeper;
select idem.grant_resolver('idem_sweeper');

select set_eq(
    $$
        select proname::text from pg_proc
        where pronamespace = 'idem'::regnamespace and proname <> 'http_complete'
            and has_function_privilege('idem_sweeper', oid, 'execute')
    $$,
    array[
        'claim_lapsed', 'complete', 'release', 'defer', 'extend', 'checkpoint', 'lookup', 'downstream_key', 'version'
    ],
    'these calls'
);
select is_empty(
    $$
        select oid::regprocedure from pg_proc
        where pronamespace = 'idem_private'::regnamespace and has_function_privilege('idem_sweeper', oid, 'execute')
    $$,
    'no helper'
);
select is_empty(
    $$
        select oid::regclass from pg_class
        where relnamespace in ('idem'::regnamespace, 'idem_private'::regnamespace) and relkind in ('r', 'v', 'S')
            and has_table_privilege('idem_sweeper', oid, 'select, insert, update, delete, truncate')
    $$,
    'no table, no view'
);
select is(has_schema_privilege('idem_sweeper', 'idem', 'usage'), true, 'the schema of the API');
select is(has_schema_privilege('idem_sweeper', 'idem_private', 'usage'), false, 'not that of the tables');

select * from finish();
rollback;
