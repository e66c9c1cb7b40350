begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.resolve('shop', 'k', 'complete', 'asked');

select results_eq(
    $$select outcome, status, headers, body from idem.reserve('shop', 'k')$$,
    $$values ('replay', null::int, null::jsonb, null::bytea)$$
);

select * from finish();
rollback;
