-- All but run: its handler has the rights and the search_path of the caller.
begin;
select plan(2);

select is_empty(
    $$
        select oid::regprocedure from pg_proc
        where pronamespace = 'idem'::regnamespace and proname <> 'run'
            and not (prosecdef and 'search_path=pg_catalog, pg_temp' = any(coalesce(proconfig, '{}')))
    $$
);
select results_eq(
    $$select prosecdef, proconfig from pg_proc where pronamespace = 'idem'::regnamespace and proname = 'run'$$,
    $$values (false, null::text[])$$
);

select * from finish();
rollback;
