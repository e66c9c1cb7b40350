-- I6
begin;
select plan(8);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
set local idem.clock_offset = '2 minutes';
select idem.claim_lapsed();
create temp table before as table idem_private.reservation;

select throws_ok($$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201)$$, 'IK002', null);
select throws_ok($$select idem.release('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK002', null);
select throws_ok($$select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK002', null);
select throws_ok($$select idem.extend('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK002', null);
select throws_ok($$select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'half')$$, 'IK002', null);
select is((idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')).outcome, 'in_progress', 'even to its owner');
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');
select isnt((select token from before), 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'::uuid);

select * from finish();
rollback;
