begin;
select plan(1);

select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');
create temp table locks as select * from pg_locks where pid = pg_backend_pid() and locktype in ('advisory', 'tuple');
select idem.lookup('shop', 'k');
select idem.lookup('shop', 'never');

select is(
    (select count(*) from pg_locks where pid = pg_backend_pid() and locktype in ('advisory', 'tuple')),
    (select count(*) from locks)
);

select * from finish();
rollback;
