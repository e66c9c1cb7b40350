-- A key of no key would be one that every such request shares.
begin;
select plan(6);

select throws_ok($$select idem.downstream_key(null, 'k')$$, 'IK001', null, 'no scope');
select throws_ok($$select idem.downstream_key('shop', null)$$, 'IK001', null, 'no key');
select throws_ok($$select idem.downstream_key('', 'k')$$, 'IK001', null, 'an empty scope');
select throws_ok($$select idem.downstream_key('shop', '')$$, 'IK001', null, 'an empty key');
select throws_ok($$select idem.downstream_key('  ', 'k')$$, 'IK001', null, 'a blank scope');
select throws_ok($$select idem.downstream_key('shop', '  ')$$, 'IK001', null, 'a blank key');

select * from finish();
rollback;
