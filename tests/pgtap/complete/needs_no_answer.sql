begin;
select plan(1);

select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');

select results_eq(
    $$select outcome, status, headers, body from idem.reserve('shop', 'k')$$,
    $$values ('replay', null::int, null::jsonb, null::bytea)$$
);

select * from finish();
rollback;
