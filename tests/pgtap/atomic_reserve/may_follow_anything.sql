begin;
select plan(2);

create temp table purchase (id int);
set local idem.single_transaction = on;
select idem.reserve('shop', 'leased', mode => 'leased');
set local idem.single_transaction = off;

select is((idem.reserve('shop', 'a')).outcome, 'started', 'writes and leased reservations');
select is((idem.reserve('shop', 'b')).outcome, 'started', 'and atomic ones');

select * from finish();
rollback;
