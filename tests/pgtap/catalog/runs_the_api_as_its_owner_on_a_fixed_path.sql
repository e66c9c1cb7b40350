begin;
select plan(1);

select is_empty(
    $$
        select oid::regprocedure from pg_proc
        where pronamespace = 'idem'::regnamespace
            and not (prosecdef and 'search_path=pg_catalog, pg_temp' = any(coalesce(proconfig, '{}')))
    $$
);

select * from finish();
rollback;
