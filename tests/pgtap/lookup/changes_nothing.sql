begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', mode => 'leased', policy => 'again');
set local idem.clock_offset = '1 hour';
create temp table before as table idem_private.reservation;

select is((idem.lookup('shop', 'k')).outcome, 'lapsed', 'a lapsed key is not taken over');
select results_eq('table idem_private.reservation', 'table before');

select * from finish();
rollback;
