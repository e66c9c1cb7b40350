begin;
select plan(4);

select throws_ok($$select idem.history(null, 'k')$$, 'IK001', null, 'no scope');
select throws_ok($$select idem.history('shop', null)$$, 'IK001', null, 'no key');
select throws_ok($$select idem.history('', 'k')$$, 'IK001', null, 'an empty scope');
select throws_ok($$select idem.history('shop', ' ')$$, 'IK001', null, 'a blank key');

select * from finish();
rollback;
