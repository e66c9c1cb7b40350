begin;
select plan(6);

set local idem.single_transaction = on;
insert into idem.policies (name, retry_after) values ('patient', '30 seconds'), ('hasty', '10 milliseconds');

select idem.reserve('shop', 'default', mode => 'leased');
select is((idem.reserve('shop', 'default')).retry_after, interval '1 second', 'one second by default');

select idem.reserve('shop', 'long', mode => 'leased', lease => '10 minutes', policy => 'patient');
select is((idem.reserve('shop', 'long')).retry_after, interval '30 seconds', 'the policy, with a longer lease');

select idem.reserve('shop', 'short', mode => 'leased', lease => '20 seconds', policy => 'patient');
select is((idem.reserve('shop', 'short')).retry_after, interval '20 seconds', 'the lease left, rounded up');

select idem.reserve('shop', 'brief', mode => 'leased', lease => '900 milliseconds', policy => 'patient');
select is((idem.reserve('shop', 'brief')).retry_after, interval '1 second', 'at least one second of lease');

select idem.reserve('shop', 'hasty', mode => 'leased', policy => 'hasty');
select is((idem.reserve('shop', 'hasty')).retry_after, interval '1 second', 'at least one second of the policy');

select idem.reserve('shop', 'atomic', policy => 'patient');
select is((idem.reserve('shop', 'atomic')).retry_after, interval '30 seconds', 'the policy, without a lease');

select * from finish();
rollback;
