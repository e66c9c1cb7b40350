-- Of this transaction too, and completed without an answer, as a mark is.
begin;
select plan(3);

set local idem.single_transaction = on;
create function pay(args jsonb) returns idem.response language sql as 'select null::idem.response';
select idem.reserve('billing', 'atomic');
select idem.reserve('billing', 'leased', mode => 'leased');
select idem.complete('billing', 'completed', token) from idem.reserve('billing', 'completed');
select idem.run('billing', 'run', null, 'pay(jsonb)', '{}');
create temp table before as table idem_private.reservation;

select is(idem.once_undo('billing', '{atomic,leased,completed,run}'), 0);
select set_eq('table idem_private.reservation', 'table before');
select is((select count(*) from before), 4::bigint);

select * from finish();
rollback;
