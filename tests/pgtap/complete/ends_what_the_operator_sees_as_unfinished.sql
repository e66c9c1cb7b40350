begin;
select plan(2);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201);

select results_eq(
    'select outcome, status from idem.keys', $$values ('completed', 201)$$, 'the key is completed'
);
select is_empty('table idem_private.unfinished', 'and no longer listed as open');

select * from finish();
rollback;
