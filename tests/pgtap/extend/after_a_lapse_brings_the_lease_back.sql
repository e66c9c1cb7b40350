begin;
select plan(2);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
set local idem.clock_offset = '1 hour';

select lives_ok(
    $$select idem.extend('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'while the token is valid'
);
select is((idem.lookup('shop', 'k')).outcome, 'in_progress', 'the owner is at work again');

select * from finish();
rollback;
