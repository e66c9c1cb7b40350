-- IK005
begin;
select plan(3);

select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');
set local idem.clock_offset = '24 hours';

set constraints all immediate;
select is(
    (idem.reserve('shop', 'k', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb')).outcome, 'started',
    'it is not refused at once'
);
select throws_ok('set constraints all immediate', 'IK005', null, 'but checked');
select idem.complete('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
select lives_ok('set constraints all immediate', 'completion satisfies the check');

select * from finish();
rollback;
