begin;
select plan(4);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(idem.resolve('shop', 'k', 'release', 'asked'), true);
select is_empty('table idem_private.reservation', 'the row goes');
select is_empty('table idem_private.unfinished', 'and its note');
select results_eq(
    $$select outcome, attempt from idem.reserve('shop', 'k', '\x02')$$, $$values ('started', 1)$$,
    'so that a corrected request may use the key'
);

select * from finish();
rollback;
