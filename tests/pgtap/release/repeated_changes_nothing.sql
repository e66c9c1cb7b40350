begin;
select plan(2);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
update idem_private.reservation set recovery_point = 'charged';
select idem.release('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as table idem_private.reservation;

set local idem.clock_offset = '1 minute';
select is(idem.release('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), false);
select results_eq('table idem_private.reservation', 'table before');

select * from finish();
rollback;
