-- I6
begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', null, 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'again');
set local idem.clock_offset = '1 hour';
select idem.reserve('shop', 'k', null, 'leased', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
create temp table before as table idem_private.reservation;

select throws_ok(
    $$select idem.extend('shop', 'k', 'cccccccc-cccc-4ccc-8ccc-cccccccccccc')$$, 'IK002', null, 'a wrong one'
);
select throws_ok(
    $$select idem.extend('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK002', null, 'a stale one'
);
select throws_ok($$select idem.extend('shop', 'k', null)$$, 'IK002', null, 'none');
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');
select lives_ok(
    $$select idem.extend('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb')$$, 'the current one'
);

select * from finish();
rollback;
