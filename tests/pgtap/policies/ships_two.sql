begin;
select plan(1);

select set_eq('select name from idem.policies', array['default', 'messages']);

select * from finish();
rollback;
