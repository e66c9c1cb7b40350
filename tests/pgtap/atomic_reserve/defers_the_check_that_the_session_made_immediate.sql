-- IK005 comes at commit, also after SET CONSTRAINTS ALL IMMEDIATE.
begin;
select plan(4);

set constraints all immediate;

select is(
    (idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')).outcome, 'started',
    'the reservation is not refused at once'
);
select throws_ok('set constraints all immediate', 'IK005', null, 'but checked');
select is(idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), true, 'it can be completed');
select lives_ok('set constraints all immediate', 'which satisfies the check');

select * from finish();
rollback;
