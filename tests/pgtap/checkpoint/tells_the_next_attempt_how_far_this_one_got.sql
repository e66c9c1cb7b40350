begin;
select plan(6);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve(
    'shop', 'k', '\x01', 'leased', state => '{"amount": 7}', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
    policy => 'again'
);

select is(
    idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '{"charge": 3}'), true
);
select is((idem.reserve('shop', 'k', '\x01', 'leased')).outcome, 'in_progress', 'the key is still its owner''s');
select results_eq(
    $$select outcome, attempt, recovery_point, state from idem.reserve(
        'shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
    )$$,
    $$values ('started', 1, 'charged', '{"charge": 3}'::jsonb)$$, 'which can read it'
);
set local idem.clock_offset = '2 minutes';
select results_eq(
    $$select outcome, attempt, recovery_point, state
      from idem.reserve('shop', 'k', '\x01', 'leased', state => '{"amount": 8}')$$,
    $$values ('started', 2, 'charged', '{"charge": 3}'::jsonb)$$, 'the next attempt goes on from there'
);
select is((select recovery_point from idem.keys), 'charged', 'the operator sees it');
select is((select recovery_point from idem.lookup('shop', 'k')), null, 'and nobody else');

select * from finish();
rollback;
