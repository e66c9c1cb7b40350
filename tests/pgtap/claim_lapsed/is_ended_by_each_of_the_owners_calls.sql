begin;
select plan(6);

set local idem.single_transaction = on;

select idem.reserve('shop', key, mode => 'leased') from unnest('{complete,release,defer,extend}'::text[]) as key;
set local idem.clock_offset = '2 minutes';
create temp table claimed as select * from idem.claim_lapsed(lease => '5 minutes');

select ok(idem.complete('shop', 'complete', token, 201)) from claimed where key = 'complete';
select is((idem.lookup('shop', 'complete')).status, 201);
select ok(idem.release('shop', 'release', token)) from claimed where key = 'release';
select is((idem.lookup('shop', 'release')).outcome, 'absent');
select ok(idem.defer('shop', 'defer', token)) from claimed where key = 'defer';
select is(
    (select idem.extend('shop', 'extend', token) from claimed where key = 'extend')
    > (select lease_until from idem_private.reservation where key = 'defer') + interval '290 seconds',
    true, 'by the length of the lease of the claim'
);

select * from finish();
rollback;
