begin;
select plan(1);

set local idem.single_transaction = on;
create function pay(jsonb) returns idem.response language sql as $$select row(201, null, null)::idem.response$$;
select idem.complete('shop', 'a', token) from idem.reserve('shop', 'a');
select idem.reserve('shop', 'a');
select idem.extend('shop', 'l', token), idem.checkpoint('shop', 'l', token, 'half'), idem.complete('shop', 'l', token)
from idem.reserve('shop', 'l', mode => 'leased');
select idem.run('shop', 'r', null, 'pay(jsonb)', '{}') from generate_series(1, 2);
select idem.once('shop', 'o') from generate_series(1, 2);
select idem.once_many('shop', '{m,n}'), idem.once_undo('shop', '{m}');
set local idem.clock_offset = '25 hours';
select idem.complete('shop', 'a', token) from idem.reserve('shop', 'a');

select is_empty('table idem_private.event');

select * from finish();
rollback;
