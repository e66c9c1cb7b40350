begin;
select plan(1);

create temp table statuses (key, status) as values
    ('none', null), ('zero', 0), ('created', 201), ('error', 500), ('negative', -1), ('max', 2147483647);
select idem.complete('shop', s.key, r.token, s.status)
from statuses as s cross join lateral idem.reserve('shop', s.key) as r;

select results_eq($$select key, (idem.reserve('shop', key)).status from statuses$$, 'table statuses');

select * from finish();
rollback;
