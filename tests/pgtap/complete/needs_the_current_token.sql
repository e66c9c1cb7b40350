-- I6
begin;
select plan(6);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'atomic', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('shop', 'k', null, 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'again');
set local idem.clock_offset = '1 hour';
select idem.reserve('shop', 'k', null, 'leased', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
create temp table before as table idem_private.reservation;

select throws_ok(
    $$select idem.complete('shop', 'atomic', 'cccccccc-cccc-4ccc-8ccc-cccccccccccc', 200)$$,
    'IK002', null, 'a wrong one'
);
select throws_ok($$select idem.complete('shop', 'atomic', null, 200)$$, 'IK002', null, 'none');
select throws_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200)$$, 'IK002', null, 'a stale one'
);
select set_eq('table idem_private.reservation', 'table before', 'nothing has changed');
select is(
    idem.complete('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 200), true, 'the current one'
);
select throws_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200)$$,
    'IK002', null, 'a stale one with the same content'
);

select * from finish();
rollback;
