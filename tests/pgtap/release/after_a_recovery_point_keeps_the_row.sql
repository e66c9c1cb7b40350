begin;
select plan(6);

set local idem.single_transaction = on;
create temp table first as
select * from idem.reserve(
    'shop', 'k', '\x01', 'leased', state => '{"charge": 7}', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);
update idem_private.reservation set recovery_point = 'charged';

select is(idem.release('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), true);
select is((idem.lookup('shop', 'k')).outcome, 'released', 'the key is released');
select is((idem.reserve('shop', 'k', '\x02')).outcome, 'mismatch', 'another request cannot have it');
create temp table second as select * from idem.reserve('shop', 'k', '\x01', 'leased');
select results_eq(
    'select outcome, attempt, recovery_point, state from second',
    $$values ('started', 2, 'charged', '{"charge": 7}'::jsonb)$$, 'the next attempt goes on'
);
select results_eq(
    'select downstream_key, created_at, expires_at from second',
    'select downstream_key, created_at, expires_at from first', 'in the same life of the key'
);
select ok((select s.token <> f.token from first as f, second as s), 'under a new token');

select * from finish();
rollback;
