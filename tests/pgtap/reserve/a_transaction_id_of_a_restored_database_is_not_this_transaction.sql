-- The id alone may be that of a transaction of the server that the database was restored from.
begin;
select plan(1);

select idem.reserve('shop', 'k');
update idem_private.reservation set owned_at = transaction_timestamp() - interval '1 microsecond';

select is((idem.reserve('shop', 'k')).outcome, 'unresolved');

select * from finish();
rollback;
