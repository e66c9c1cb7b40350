begin;
select plan(4);

set local idem.single_transaction = on;

insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', mode => 'leased', policy => 'again');
set local idem.clock_offset = '2 minutes';
select idem.reserve('shop', 'k', mode => 'leased');
create temp table before as table idem_private.reservation;

select is(idem.resolve('shop', 'k', 'retry', 'asked', attempt => 1), false, 'at work');
set local idem.clock_offset = '4 minutes';
select is(idem.resolve('shop', 'k', 'complete', 'asked', attempt => 1, force => true), false, 'lapsed again');
select results_eq('table idem_private.reservation', 'table before');
select is(idem.resolve('shop', 'k', 'retry', 'asked', attempt => 2), true);

select * from finish();
rollback;
