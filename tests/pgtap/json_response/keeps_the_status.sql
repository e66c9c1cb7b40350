begin;
select plan(2);

select results_eq(
    $$select (idem.json_response(status, '{}')).status from unnest(array[201, 500, 0, -1]) as status$$,
    array[201, 500, 0, -1]
);
select is((idem.json_response(null, '{}')).status, null, 'none is a status, too');

select * from finish();
rollback;
