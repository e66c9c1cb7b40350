-- I12: an acknowledgement that was lost cannot lock the owner out, and a lapse does not end the ownership.
begin;
select plan(2);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set local idem.clock_offset = '1 hour';
select results_eq(
    $$
        select outcome, attempt, lease_until > clock_timestamp() + interval '1 hour'
        from idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')
    $$,
    $$values ('started', 1, true)$$,
    'started again at the same attempt, with a new lease'
);
select is((idem.lookup('shop', 'k')).outcome, 'in_progress', 'and at work again');

select * from finish();
rollback;
