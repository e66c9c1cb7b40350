begin;
select plan(3);

select throws_ok('select idem.forget(null)', 'IK001', 'the scope is null');
select throws_ok($$select idem.forget('')$$, 'IK001', 'the scope is empty');
select throws_ok($$select idem.forget('shop', '')$$, 'IK001', 'the key is empty');

select * from finish();
rollback;
