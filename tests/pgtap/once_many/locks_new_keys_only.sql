-- Each lock takes a slot of the lock table.
begin;
select plan(3);

create function pg_temp.locks() returns bigint language sql as
$$select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()$$;
savepoint before;
select count(*) from idem.once_many('billing', '{a,b,a,b,c}');
select is(pg_temp.locks(), 3::bigint, 'one for each new key');
select count(*) from idem.once_many('billing', '{c,b,a}');
select is(pg_temp.locks(), 3::bigint, 'none for others');
rollback to savepoint before;
select is(pg_temp.locks(), 0::bigint, 'none once rolled back');

select * from finish();
rollback;
