begin;
select plan(7);

select idem.once('billing', 'before');
savepoint message;
select idem.once('billing', 'inside');
select is(idem.once_undo('billing', '{before,inside}'), 2, 'it is one transaction');
rollback to savepoint message;
select is(idem.once('billing', 'before'), 'duplicate', 'a rolled-back undo has not been');
select is(idem.once('billing', 'inside'), 'first', 'nor a rolled-back mark');
release savepoint message;
select is(idem.once_undo('billing', '{inside}'), 1, 'a mark of a released savepoint is one of this transaction');
savepoint message;
select idem.once_undo('billing', '{before}');
release savepoint message;
select is(idem.once('billing', 'before'), 'first', 'a released undo stays');
select is(idem.once('billing', 'before'), 'duplicate');
select is(idem.once('billing', 'inside'), 'first');

select * from finish();
rollback;
