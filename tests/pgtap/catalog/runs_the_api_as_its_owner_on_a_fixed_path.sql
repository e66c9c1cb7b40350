-- All but two: the handler of run has the rights and the search_path of the caller, and purge_all commits.
begin;
select plan(2);

select is_empty(
    $$
        select oid::regprocedure from pg_proc
        where pronamespace = 'idem'::regnamespace and proname not in ('run', 'purge_all')
            and not (prosecdef and 'search_path=pg_catalog, pg_temp' = any(coalesce(proconfig, '{}')))
    $$
);
select results_eq(
    $$
        select proname, prosecdef, proconfig from pg_proc
        where pronamespace = 'idem'::regnamespace and proname in ('run', 'purge_all') order by proname
    $$,
    $$values ('purge_all'::name, false, null::text[]), ('run', false, null)$$
);

select * from finish();
rollback;
