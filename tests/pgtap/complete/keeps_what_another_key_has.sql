begin;
select plan(2);

select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('shop', 'l', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('pub', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201);

select is((idem.lookup('shop', 'l')).outcome, 'in_progress', 'another key, under the same token');
select is((idem.lookup('pub', 'k')).outcome, 'in_progress', 'another scope, under the same token');

select * from finish();
rollback;
