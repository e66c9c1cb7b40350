begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', '\x01', 'leased', state => '1', policy => 'again');
set local idem.clock_offset = '1 hour';
select idem.reserve('shop', 'k', '\x01', 'leased', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');

select is(idem.release('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb'), true);
select results_eq(
    $$select outcome, attempt from idem.lookup('shop', 'k')$$, $$values ('released', 2)$$, 'the key is released'
);
select is((idem.reserve('shop', 'k', '\x02')).outcome, 'mismatch', 'another request cannot have it');
select results_eq(
    $$select outcome, attempt, state from idem.reserve('shop', 'k', '\x01', 'leased')$$,
    $$values ('started', 3, '1'::jsonb)$$, 'the next attempt goes on'
);

select * from finish();
rollback;
