-- I12: an acknowledgement that was lost cannot lock the owner out.
begin;
select plan(3);

set local idem.single_transaction = on;
create temp table first as
select * from idem.reserve(
    'shop', 'k', '\x01', 'leased', state => '{"amount": 7}', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);

set local idem.clock_offset = '40 seconds';
create temp table again as
select * from idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select results_eq(
    'select outcome, token, attempt, downstream_key, state, created_at, expires_at from again',
    'select outcome, token, attempt, downstream_key, state, created_at, expires_at from first',
    'the same reservation, still at its first attempt'
);
select ok(
    (select a.lease_until >= f.lease_until + interval '40 seconds' from first as f, again as a), 'with a renewed lease'
);
set local idem.clock_offset = '99 seconds';
select is((idem.reserve('shop', 'k', '\x01')).outcome, 'in_progress', 'that others respect');

select * from finish();
rollback;
