-- The secret travels with a dump, so an index or a stored column must not hold it: never IMMUTABLE.
begin;
select plan(1);

select is(
    (select provolatile from pg_proc where oid = 'idem.downstream_key(text, text, text)'::regprocedure), 's'::"char"
);

select * from finish();
rollback;
