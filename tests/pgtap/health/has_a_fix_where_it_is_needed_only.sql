begin;
select plan(3);

select is_empty('select check_name from idem.health() where ok and fix is not null');
select is_empty('select check_name from idem.health() where not ok and fix is null');
set local transaction_read_only = on;
select isnt_empty('select check_name from idem.health()', 'it writes nothing');

select * from finish();
rollback;
