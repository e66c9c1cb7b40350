begin;
select plan(4);

set local idem.single_transaction = on;

select idem.reserve('shop', 'alive', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.checkpoint('shop', 'released', token, 'half'), idem.release('shop', 'released', token)
from idem.reserve('shop', 'released', mode => 'leased');

select ok(idem.resolve('shop', 'alive', 'retry', 'asked', force => true));
select throws_ok($$select idem.complete('shop', 'alive', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$, 'IK002', null);
select ok(idem.resolve('shop', 'released', 'complete', 'it was done after all', force => true, status => 201));
select results_eq(
    $$select outcome, status from idem.reserve('shop', 'released')$$, $$values ('replay', 201)$$, 'released no more'
);

select * from finish();
rollback;
