-- The limit: the work alone in its transaction.
begin;
insert into orders (amount, note) values (1, 'benchmark');
commit;
