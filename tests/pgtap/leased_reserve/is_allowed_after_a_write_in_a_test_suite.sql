begin;
select plan(2);

set local idem.single_transaction = on;

select is((idem.reserve('shop', 'k', mode => 'leased')).outcome, 'started', 'idem.single_transaction = on');
set local idem.single_transaction = off;
select throws_ok(
    $$select idem.reserve('shop', 'l', mode => 'leased')$$, 'IK004', null, 'idem.single_transaction = off'
);

select * from finish();
rollback;
