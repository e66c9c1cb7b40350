begin;
select plan(3);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', '\x01', 'leased', state => '1', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(idem.release('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), true);
select is((idem.lookup('shop', 'k')).outcome, 'absent', 'nothing is left');
select results_eq(
    $$select outcome, attempt, state from idem.reserve('shop', 'k', '\x02', 'leased')$$,
    $$values ('started', 1, null::jsonb)$$, 'a corrected request may use the key'
);

select * from finish();
rollback;
