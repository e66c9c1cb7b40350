-- I11
begin;
select plan(7);

set local idem.single_transaction = on;
select idem.reserve(
    'shop', key, mode => 'leased', state => '{"amount": 7}', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
)
from unnest(array['k', 'null', 'none']) as key;
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '{"a": 1, "b": [1.0]}');
select idem.checkpoint('shop', 'null', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', 'null');
select idem.checkpoint('shop', 'none', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged');
create temp table before as table idem_private.reservation;

set local idem.clock_offset = '10 seconds';
select is(
    idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '{"b": [1.0], "a": 1}'), false,
    'the same state'
);
select is(
    idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged'), false, 'null keeps the stored one'
);
select is(
    idem.checkpoint('shop', 'null', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', 'null'), false, 'JSON null'
);
select is(
    idem.checkpoint('shop', 'none', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged'), false, 'without a state'
);
select is(
    idem.checkpoint('shop', 'none', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged', '{"amount": 7}'), false,
    'the state that was kept'
);
select set_eq('table idem_private.reservation', 'table before', 'nothing has changed, the lease neither');
select lives_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201)$$, 'the owner goes on'
);

select * from finish();
rollback;
