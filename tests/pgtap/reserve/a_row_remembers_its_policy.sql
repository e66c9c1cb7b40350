begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, tombstone, lease) values
    ('again', 'retry', '1 day', '60 seconds'), ('held', 'hold', '0', '60 seconds');
select idem.reserve('shop', 'held', mode => 'leased', policy => 'held');
select idem.reserve('shop', 'again', mode => 'leased', policy => 'again');
select idem.complete('shop', 'tombstone', token) from idem.reserve('shop', 'tombstone', policy => 'again');
select idem.complete('shop', 'gone', token) from idem.reserve('shop', 'gone', policy => 'held');

set local idem.clock_offset = '25 hours';
select is((idem.reserve('shop', 'held', mode => 'leased', policy => 'again')).outcome, 'unresolved', 'hold');
select is((idem.reserve('shop', 'again', mode => 'leased', policy => 'held')).outcome, 'started', 'retry');
select is((idem.reserve('shop', 'tombstone', policy => 'held')).outcome, 'expired', 'a tombstone');
select is((idem.reserve('shop', 'gone', policy => 'again')).outcome, 'started', 'no tombstone');

select * from finish();
rollback;
