-- I12: an acknowledgement that was lost cannot lock the owner out.
begin;
select plan(2);

create temp table first as
select * from idem.reserve(
    'shop', 'k', '\x01', state => '{"amount": 7}', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);

select results_eq(
    $$select * from idem.reserve('shop', 'k', '\x01', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$,
    'table first',
    'the same reservation, still at its first attempt'
);
select is(
    idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201), true, 'which its token completes'
);

select * from finish();
rollback;
