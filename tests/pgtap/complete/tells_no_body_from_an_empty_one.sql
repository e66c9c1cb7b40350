begin;
select plan(2);

select idem.complete('shop', 'none', token, 204) from idem.reserve('shop', 'none');
select idem.complete('shop', 'empty', token, 200, null, '') from idem.reserve('shop', 'empty');

select results_eq(
    $$select outcome, body from idem.reserve('shop', 'none')$$, $$values ('replay', null::bytea)$$, 'no body'
);
select results_eq(
    $$select outcome, body from idem.reserve('shop', 'empty')$$, $$values ('replay', ''::bytea)$$, 'an empty body'
);

select * from finish();
rollback;
