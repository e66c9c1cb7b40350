begin;
select plan(6);

create role idem_application;
select idem.grant_client('idem_application');

select set_eq(
    $$
        select proname::text from pg_proc
        where pronamespace = 'idem'::regnamespace and has_function_privilege('idem_application', oid, 'execute')
    $$,
    array[
        'reserve', 'complete', 'release', 'defer', 'extend', 'checkpoint', 'lookup', 'downstream_key', 'version',
        'run', 'run_begin', 'run_end', 'json_response', 'once', 'once_many', 'once_undo',
        'fingerprint', 'fingerprint_fields', 'http_reserve', 'http_complete', 'policy_document'
    ],
    'these calls'
);
select is_empty(
    $$
        select oid::regprocedure from pg_proc
        where pronamespace = 'idem_private'::regnamespace and has_function_privilege('idem_application', oid, 'execute')
    $$,
    'no helper'
);
select is_empty(
    $$
        select oid::regclass from pg_class
        where relnamespace in ('idem'::regnamespace, 'idem_private'::regnamespace) and relkind in ('r', 'v', 'S')
            and has_table_privilege('idem_application', oid, 'select, insert, update, delete, truncate')
    $$,
    'no table, no view'
);
select is(has_schema_privilege('idem_application', 'idem', 'usage'), true, 'the schema of the API');
select is(has_schema_privilege('idem_application', 'idem', 'create'), false, 'in which nothing can be created');
select is(has_schema_privilege('idem_application', 'idem_private', 'usage'), false, 'not that of the tables');

select * from finish();
rollback;
