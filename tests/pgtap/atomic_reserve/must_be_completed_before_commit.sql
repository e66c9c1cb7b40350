-- IK005, as at COMMIT: the check can be called for inside the transaction.
begin;
select plan(2);

select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select throws_ok('set constraints all immediate', 'IK005', null, 'not while it is open');
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201);
select lives_ok('set constraints all immediate', 'but once it is completed');

select * from finish();
rollback;
