begin;
select plan(2);

savepoint before;
select idem.once('billing', 'm1');
rollback to savepoint before;
select is((idem.lookup('billing', 'm1')).outcome, 'absent');
select is(idem.once('billing', 'm1'), 'first');

select * from finish();
rollback;
