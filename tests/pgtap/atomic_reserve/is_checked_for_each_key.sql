-- IK005
begin;
select plan(2);

select idem.complete('shop', 'a', token) from idem.reserve('shop', 'a');
select idem.reserve('shop', 'b', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'c', token) from idem.reserve('shop', 'c');

select throws_ok('set constraints all immediate', 'IK005', null, 'one of three is open');
select idem.complete('shop', 'b', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select lives_ok('set constraints all immediate', 'none is');

select * from finish();
rollback;
