begin;
select plan(6);

set local idem.single_transaction = on;
select idem.reserve(
    'shop', 'k', mode => 'leased', lease => '5 minutes', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);
select idem.reserve('shop', 'deferred', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'deferred', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set local idem.clock_offset = '4 minutes';
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged');
select is(
    (select date_trunc('second', lease_until - clock_timestamp() + interval '500 milliseconds')
     from idem.lookup('shop', 'k')),
    interval '9 minutes', 'by the length it was reserved with'
);
set local idem.clock_offset = '8 minutes 50 seconds';
select is((idem.lookup('shop', 'k')).outcome, 'in_progress');
set local idem.clock_offset = '1 hour';
select is((idem.lookup('shop', 'k')).outcome, 'lapsed');
select is(
    idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'mailed'), true,
    'after a lapse, too, while nobody has taken over'
);
select is((idem.lookup('shop', 'k')).outcome, 'in_progress');
select idem.checkpoint('shop', 'deferred', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged');
select is((idem.lookup('shop', 'deferred')).outcome, 'in_progress', 'and after its owner had given up');

select * from finish();
rollback;
