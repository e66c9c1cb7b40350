begin;
select plan(9);
\ir ../check.psql

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, max_claims) values ('again', 'retry', 1);
select idem.reserve('shop', 'done', mode => 'leased', token => '00000000-0000-4000-8000-000000000001');
select idem.complete('shop', 'done', '00000000-0000-4000-8000-000000000001', 201);
select idem.reserve('shop', 'held', mode => 'leased');
select idem.reserve('shop', 'again', mode => 'leased', policy => 'again');
select is(pg_temp.health('lapsed'), 'true: no key has an unknown outcome', 'their leases run');

set local idem.clock_offset = '2 minutes';
select matches(pg_temp.health('lapsed'), '^true: 2 with an unknown outcome, the oldest for 00:01:\d\d; 1 unresolved$');
set local idem.clock_offset = '15 minutes 30 seconds';
select matches(pg_temp.health('lapsed'), '^true: 2 ');
set local idem.clock_offset = '16 minutes';
select matches(pg_temp.health('lapsed'), '^false: 2 with an unknown outcome, the oldest for 00:15:\d\d; 1 unresolved$');
select matches(pg_temp.fix('lapsed'), '^pyidem sweep .*pyidem list');

select is(pg_temp.health('given_up'), 'true: no key waits for an operator');
select idem.claim_lapsed(policy => 'again');
select is(pg_temp.health('given_up'), 'true: no key waits for an operator', 'nor while it is claimed');
set local idem.clock_offset = '1 hour';
select matches(
    pg_temp.health('given_up'), '^false: 1 claimed so often that they wait for an operator, the oldest for 00:4\d:\d\d$'
);
select idem.resolve('shop', 'again', 'release', 'asked the provider');
select matches(pg_temp.health('given_up'), '^true: ');

select * from finish();
rollback;
