begin;
select plan(2);

savepoint before;
select count(*) from idem.once_many('billing', '{a,b}');
rollback to savepoint before;
select is_empty('table idem_private.reservation');
select set_eq($$select outcome from idem.once_many('billing', '{b,a}')$$, array['first']);

select * from finish();
rollback;
