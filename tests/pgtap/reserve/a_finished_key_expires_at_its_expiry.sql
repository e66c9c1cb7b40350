begin;
select plan(2);

insert into idem.policies (name, ttl) values ('short', '3 hours');
select idem.complete('shop', 'k', token, 200) from idem.reserve('shop', 'k', policy => 'short');

set local idem.clock_offset = '2 hours 59 minutes';
select is((idem.reserve('shop', 'k')).outcome, 'replay', 'not before');
set local idem.clock_offset = '3 hours';
select is((idem.reserve('shop', 'k')).outcome, 'started', 'but then');

select * from finish();
rollback;
