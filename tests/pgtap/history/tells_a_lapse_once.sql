begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
set local idem.clock_offset = '2 minutes';
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', reason => 'late');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', reason => 'later');
select idem.resolve('shop', 'k', 'release', 'asked');

select results_eq(
    $$select event, reason from idem.history('shop', 'k')$$,
    $$values
        ('reserved', null), ('lapsed', null), ('deferred', 'late'), ('deferred', 'later'), ('resolved', 'asked')
    $$
);

select * from finish();
rollback;
