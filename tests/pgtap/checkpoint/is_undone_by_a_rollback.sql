begin;
select plan(4);

set local idem.single_transaction = on;
create temp table purchase (id int);
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as table idem_private.reservation;

savepoint step;
insert into purchase values (1);
select is(idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '1'), true);
rollback to savepoint step;
select results_eq('table idem_private.reservation', 'table before', 'with the work that it speaks of');
select is(idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '2'), true, 'as if never made');
select is((select state from idem_private.reservation), '2');

select * from finish();
rollback;
