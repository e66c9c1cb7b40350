begin;
select plan(9);
\ir ../check.psql

select is(pg_temp.health('purge'), 'true: has never run; nothing is due');
select is(idem.once('shop', 'k1'), 'first');
insert into idem.policies (name, ttl) values ('short', '1 hour');
select idem.once('shop', 'k2', 'short'), idem.once('shop', 'k3', 'short');
set local idem.clock_offset = '2 hours';
select matches(pg_temp.health('purge'), '^true: has never run; 2 due, the oldest for 01:0');
set local idem.clock_offset = '25 hours 59 minutes';
select matches(pg_temp.health('purge'), '^true: ');
set local idem.clock_offset = '26 hours 1 minute';
select matches(pg_temp.health('purge'), '^false: has never run; 2 due, the oldest for 1 day 01:0');
select is(pg_temp.fix('purge'), 'call idem.purge_all();');
select is(idem.purge(), bigint '2');
select matches(pg_temp.health('purge'), '^true: ended 00:00:0\d ago, removed 2; nothing is due$');
drop index idem_private.reservation_expiry;
select matches(pg_temp.health('purge'), '^unknown: ended .*cannot be seen without the index');

select * from finish();
rollback;
