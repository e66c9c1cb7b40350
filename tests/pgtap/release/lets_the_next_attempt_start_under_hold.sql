begin;
select plan(1);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
update idem_private.reservation set recovery_point = 'charged';
set local idem.clock_offset = '1 hour';
select idem.release('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is((idem.reserve('shop', 'k', mode => 'leased')).attempt, 2, 'its owner knows the outcome, even after a lapse');

select * from finish();
rollback;
