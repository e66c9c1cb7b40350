begin;
select plan(6);
\ir ../citus.psql

select idem.distribute();
select results_eq(
    $$
        select logicalrelid::text, distribution_column, colocated from pg_dist_partition
        where method = 'hash' order by number
    $$,
    $$values
        ('idem_private.reservation', 'scope', 'none'),
        ('idem_private.unfinished', 'scope', 'idem_private.reservation'),
        ('idem_private.event', 'scope', 'idem_private.reservation')$$,
    'keys by their scope, side by side'
);
select set_eq(
    $$select logicalrelid::text from pg_dist_partition where method = 'reference'$$,
    array[
        'idem_private.policy', 'idem_private.retired_policy', 'idem_private.secret', 'idem_private.scope_binding',
        'idem_private.testing'
    ],
    'what every call reads is on every node'
);
select set_eq(
    $$
        select name::regproc::text from distributed_functions
        where argument = 'scope' and colocated = 'idem_private.reservation' and forced
    $$,
    $$
        select p.oid::regproc::text from pg_proc as p
        where p.pronamespace = 'idem'::regnamespace and p.proargnames[1] = 'scope' and p.proname <> 'run'
    $$,
    'calls for a scope go to its node, also inside a transaction'
);
select is_empty(
    $$
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'idem_private'::regnamespace and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype
            and p.oid <> all(select name from distributed_functions)
            and p.proname not in ('present_objects')
    $$,
    'so does every function that they call'
);
create temp table calls as select count(*) as made from pg_dist_partition;
select lives_ok('select idem.distribute()', 'again');
select is((select count(*) from pg_dist_partition), (select made from calls), 'changes nothing');

select * from finish();
rollback;
