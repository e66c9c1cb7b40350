-- I13
begin;
select plan(1);

select clock_timestamp() as then \gset
select idem.once('billing', 'm1');

select ok((idem.lookup('billing', 'm1')).completed_at >= :'then', 'not at the start of the transaction');

select * from finish();
rollback;
