-- IK005
begin;
select plan(2);

savepoint before;
select idem.reserve('shop', 'k');
rollback to savepoint before;
select lives_ok('set constraints all immediate', 'a reservation that was rolled back');

select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');
select lives_ok('set constraints all immediate', 'and one made again and completed');

select * from finish();
rollback;
