begin;
select plan(2);

savepoint before;
select idem.reserve('shop', 'k', '\x01');
rollback to savepoint before;

select is((idem.lookup('shop', 'k')).outcome, 'absent', 'nothing is left');
select is((idem.reserve('shop', 'k', '\x02')).outcome, 'started', 'the key is free for any request');

select * from finish();
rollback;
