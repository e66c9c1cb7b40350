begin;
select plan(12);
\ir ../check.psql

select is(pg_temp.health('writable'), 'true: keys can be reserved');
set local default_transaction_read_only = on;
select matches(pg_temp.health('writable'), '^false: default_transaction_read_only is on');
select matches(pg_temp.fix('writable'), '^alter database .* reset default_transaction_read_only;');

select is(pg_temp.health('autovacuum'), 'true: keeps up');
alter table idem_private.unfinished set (autovacuum_enabled = off);
select is(pg_temp.health('autovacuum'), 'false: it is off for idem_private.unfinished');
select pg_temp.carry_out_fix('autovacuum');
select is(pg_temp.health('autovacuum'), 'true: keeps up');

select matches(pg_temp.health('lock_table'), '^true: \d+ of \d+ slots in use, the largest max_batch is 200$');
update idem.policies set max_batch = 1000000 where name = 'messages';
select matches(pg_temp.health('lock_table'), '^false: ');
select matches(pg_temp.fix('lock_table'), '^alter system set max_locks_per_transaction = \d+;');

-- as the throwaway server has it, whose data nobody needs
select matches(pg_temp.health('durability'), '^false: fsync is off');
select matches(pg_temp.fix('durability'), 'fsync = on');
select is(pg_temp.health('replication'), 'true: no standby is connected');

select * from finish();
rollback;
