-- IK005
begin;
select plan(3);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
update idem_private.reservation set recovery_point = 'charged';
select idem.release('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set constraints all immediate;
select is(
    (idem.reserve('shop', 'k', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb')).attempt, 2, 'it is not refused at once'
);
select throws_ok('set constraints all immediate', 'IK005', null, 'but checked');
select idem.complete('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
select lives_ok('set constraints all immediate', 'completion satisfies the check');

select * from finish();
rollback;
