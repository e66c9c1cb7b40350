-- IK005
begin;
select plan(2);

select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

savepoint before;
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201);
rollback to savepoint before;
select throws_ok('set constraints all immediate', 'IK005', null, 'a completion that was rolled back does not count');

savepoint before;
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201);
release savepoint before;
select lives_ok('set constraints all immediate', 'one in a released savepoint does');

select * from finish();
rollback;
