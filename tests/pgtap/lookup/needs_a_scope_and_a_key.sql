begin;
select plan(6);

select throws_ok($$select idem.lookup(null, 'k')$$, 'IK001', null, 'no scope');
select throws_ok($$select idem.lookup('shop', null)$$, 'IK001', null, 'no key');
select throws_ok($$select idem.lookup('', 'k')$$, 'IK001', null, 'an empty scope');
select throws_ok($$select idem.lookup('shop', '')$$, 'IK001', null, 'an empty key');
select throws_ok($$select idem.lookup('  ', 'k')$$, 'IK001', null, 'a blank scope');
select throws_ok($$select idem.lookup('shop', '  ')$$, 'IK001', null, 'a blank key');

select * from finish();
rollback;
