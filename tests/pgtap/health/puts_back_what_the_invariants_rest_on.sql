begin;
select plan(13);
\ir ../check.psql

select matches(pg_temp.health('primary_key'), '^true: ');
alter table idem_private.reservation drop constraint reservation_pkey;
select matches(pg_temp.health('primary_key'), '^false: missing');
select pg_temp.carry_out_fix('primary_key');
select matches(pg_temp.health('primary_key'), '^true: ', 'the primary key is back');

select matches(pg_temp.health('expiry_index'), '^true: ');
drop index idem_private.reservation_expiry;
select matches(pg_temp.health('expiry_index'), '^false: missing');
select matches(pg_temp.fix('expiry_index'), '^CREATE INDEX CONCURRENTLY ');
select pg_temp.carry_out_fix('expiry_index');
select matches(pg_temp.health('expiry_index'), '^true: ', 'the index is back');
update pg_index set indisvalid = false where indexrelid = 'idem_private.reservation_expiry'::regclass;
select matches(pg_temp.health('expiry_index'), '^false: invalid');
update pg_index set indisvalid = true where indexrelid = 'idem_private.reservation_expiry'::regclass;

select matches(pg_temp.health('check_at_commit'), '^true: ');
alter table idem_private.reservation disable trigger reservation_completed;
select matches(pg_temp.health('check_at_commit'), '^false: its trigger is disabled');
select pg_temp.carry_out_fix('check_at_commit');
drop trigger reservation_completed on idem_private.reservation;
select matches(pg_temp.health('check_at_commit'), '^false: its trigger is missing');
select pg_temp.carry_out_fix('check_at_commit');
select is(pg_temp.health('drift'), 'true: every object is as the revision made it', 'all is as it was');
set local session_replication_role = replica;
select matches(pg_temp.health('check_at_commit'), '^false: session_replication_role is replica');

select * from finish();
rollback;
