begin;
select plan(1);

select is_empty(
    $$select proname from pg_proc where pronamespace = 'idem'::regnamespace group by proname having count(*) > 1$$
);

select * from finish();
rollback;
