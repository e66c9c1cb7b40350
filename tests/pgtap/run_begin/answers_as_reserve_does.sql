-- Nothing of a stored key but what reserve tells and does.
begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, max_attempts, tombstone) values
    ('again', 'retry', 1, '0'), ('kept', 'hold', null, '1 day');
create function pay(args jsonb) returns idem.response language sql as 'select row(201, null, null)::idem.response';
select idem.reserve('shop', 'live', '\x01', 'leased', '2 days', state => '{"secret": 1}');
select idem.reserve('shop', 'held', '\x01', 'leased', state => '{"secret": 1}');
select idem.reserve('shop', 'used up', '\x01', 'leased', policy => 'again');
select idem.complete('shop', 'completed', token, 200, '[["a", "b"]]', 'x')
from idem.reserve('shop', 'completed', '\x01', policy => 'messages');
select idem.complete('shop', 'tombstone', token, 200) from idem.reserve('shop', 'tombstone', '\x01', policy => 'kept');

set local idem.clock_offset = '25 hours';
create temp table before as table idem_private.reservation;
select results_eq(
    $$select b.key, to_jsonb(a) - 'lease_until'
      from before as b cross join lateral idem.run_begin('shop', b.key, '\x01', 'pay(jsonb)') as a$$,
    $$select b.key, to_jsonb(a) - 'lease_until'
      from before as b cross join lateral idem.reserve('shop', b.key, '\x01') as a$$,
    'the same request'
);
select set_eq(
    $$select a.outcome from before as b cross join lateral idem.run_begin('shop', b.key, '\x01', 'pay(jsonb)') as a$$,
    array['in_progress', 'unresolved', 'replay', 'expired'],
    'none of them is started'
);
select set_eq(
    $$select a.outcome, a.token, a.state, a.status, a.headers, a.body
      from before as b cross join lateral idem.run_begin('shop', b.key, '\x02', 'pay(jsonb)') as a$$,
    $$values ('mismatch', null::uuid, null::jsonb, null::int, null::jsonb, null::bytea)$$,
    'another request'
);
select set_eq('table idem_private.reservation', 'table before', 'nothing has changed');

select * from finish();
rollback;
