begin;
select plan(2);

select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');

select is_empty($$select * from idem.history('shop', 'K')$$);
select is_empty($$select * from idem.history('shop ', 'k')$$);

select * from finish();
rollback;
