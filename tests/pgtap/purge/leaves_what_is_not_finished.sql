begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'lapsed', mode => 'leased', state => '7', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('shop', 'alive', mode => 'leased', lease => '1000 days');
select idem.checkpoint('shop', 'released', token, 'charged'), idem.release('shop', 'released', token)
from idem.reserve('shop', 'released', mode => 'leased');

set local idem.clock_offset = '900 days';
create temp table before as select * from idem.keys;
select is(idem.purge(), 0::bigint, 'nothing');
select bag_eq('select * from idem.keys', 'select * from before', 'every key is as it was');
select is(
    idem.complete('shop', 'lapsed', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201), true,
    'the owner of the lapsed one may still complete it'
);
select is(idem.purge(), 0::bigint, 'and then it has min_retention');

select * from finish();
rollback;
