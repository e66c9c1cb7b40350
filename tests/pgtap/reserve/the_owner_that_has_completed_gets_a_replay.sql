begin;
select plan(1);

select idem.complete('shop', 'k', token, 201)
from idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select results_eq(
    $$select outcome, status, token from idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$,
    $$values ('replay', 201, null::uuid)$$
);

select * from finish();
rollback;
