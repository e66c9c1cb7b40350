begin;
select plan(6);

create role idem_watch;
select idem.grant_monitor('idem_watch');
set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased');

create temp table seen (outcome text);
grant insert on seen to idem_watch;
set local role idem_watch;
insert into seen select outcome from idem.keys;
select throws_ok('select idem.lookup(''shop'', ''k'')', '42501', null, 'no answer of a key');
select throws_ok('insert into idem.policies (name) values (''mine'')', '42501', null, 'no policy');
reset role;
select results_eq('table seen', $$values ('in_progress')$$, 'the keys');
select is_empty(
    $$
        select oid::regprocedure from pg_proc
        where pronamespace = 'idem'::regnamespace and has_function_privilege('idem_watch', oid, 'execute')
            and proname not in ('version', 'health', 'stats', 'purge_state')
    $$,
    'no call that changes something'
);
select is_empty(
    $$
        select oid::regclass from pg_class
        where relnamespace in ('idem'::regnamespace, 'idem_private'::regnamespace) and relkind in ('r', 'v', 'S')
            and has_table_privilege('idem_watch', oid, 'select, insert, update, delete, truncate')
            and oid <> 'idem.keys'::regclass
    $$,
    'no table, no other view'
);
select is(has_schema_privilege('idem_watch', 'idem_private', 'usage, create'), false, 'the private schema stays closed');

select * from finish();
rollback;
