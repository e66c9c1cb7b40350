begin;
select plan(4);

select isnt(obj_description('idem'::regnamespace, 'pg_namespace'), null, 'the schema');
select is_empty(
    $$
        select oid::regprocedure from pg_proc
        where pronamespace = 'idem'::regnamespace and obj_description(oid, 'pg_proc') is null
    $$,
    'functions'
);
select is_empty(
    $$
        select oid::regclass from pg_class
        where relnamespace = 'idem'::regnamespace and relkind <> 'c' and obj_description(oid, 'pg_class') is null
    $$,
    'views'
);
select is_empty(
    $$
        select t.oid::regtype from pg_type as t inner join pg_class as c on t.typrelid = c.oid
        where t.typnamespace = 'idem'::regnamespace and c.relkind = 'c' and obj_description(t.oid, 'pg_type') is null
    $$,
    'types'
);

select * from finish();
rollback;
