-- By what it says now, but for the ttl, which a key has had from its reservation on. Also a policy that is deleted.
begin;
select plan(5);

insert into idem.policies (name, ttl, min_retention) values ('short', '2 minutes', '1 minute');
insert into idem.policies (name, ttl, lease, min_retention) values ('gone', '2 minutes', '1 minute', '3 hours');
select idem.complete('shop', 'short', token, 200) from idem.reserve('shop', 'short', policy => 'short');
select idem.complete('shop', 'gone', token, 200) from idem.reserve('shop', 'gone', policy => 'gone');
update idem.policies set ttl = '1 day', min_retention = '1 hour' where name = 'short';
insert into idem_private.retired_policy select p.* from idem_private.policy as p where p.name = 'gone';
alter table idem_private.policy disable trigger retire_policy;
delete from idem.policies where name = 'gone';

set local idem.clock_offset = '59 minutes';
select is(idem.purge(), 0::bigint, 'the longer min_retention counts');
set local idem.clock_offset = '61 minutes';
select is(idem.purge(), 1::bigint, 'the longer ttl does not');
select is((idem.lookup('shop', 'short')).outcome, 'absent');
set local idem.clock_offset = '179 minutes';
select is(idem.purge(), 0::bigint, 'a policy that is gone still counts');
set local idem.clock_offset = '181 minutes';
select is(idem.purge(), 1::bigint);

select * from finish();
rollback;
