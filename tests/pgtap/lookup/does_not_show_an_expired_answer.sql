begin;
select plan(2);

insert into idem.policies (name, tombstone) values ('kept', '1 day');
select idem.complete('shop', 'kept', token, 201, '[["a", "b"]]', 'x')
from idem.reserve('shop', 'kept', policy => 'kept');
select idem.complete('shop', 'gone', token, 201, '[["a", "b"]]', 'x') from idem.reserve('shop', 'gone');
set local idem.clock_offset = '24 hours';

select results_eq(
    $$select outcome, status, headers, body from idem.lookup('shop', 'kept')$$,
    $$values ('expired', null::int, null::jsonb, null::bytea)$$, 'inside the tombstone window'
);
select is(
    (idem.lookup('shop', 'gone'))::text, (idem.lookup('shop', 'never'))::text,
    'an expired row behaves like no row'
);

select * from finish();
rollback;
