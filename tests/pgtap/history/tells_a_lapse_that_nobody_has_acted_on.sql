begin;
select plan(5);

set local idem.single_transaction = on;

select idem.reserve('shop', key, mode => 'leased', lease => '1 minute', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')
from unnest('{lapsed,late,deferred,renewed}'::text[]) as key;
select idem.complete('shop', 'atomic', token) from idem.reserve('shop', 'atomic');
select idem.defer('shop', 'deferred', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
set local idem.clock_offset = '2 minutes';
select idem.complete('shop', 'late', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.extend('shop', 'renewed', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

create function pg_temp.told(key text) returns text language sql as $$
    select string_agg(event, ' ') from idem.history('shop', key)
$$;
select is(pg_temp.told('lapsed'), 'reserved lapsed', 'it is lapsed now');
select is(pg_temp.told('late'), 'reserved lapsed completed', 'its owner came late');
select is(pg_temp.told('deferred'), 'reserved deferred', 'its owner gave up');
select is(pg_temp.told('renewed'), 'reserved', 'its owner is back');
select is(pg_temp.told('atomic'), 'reserved completed', 'it never had a lease');

select * from finish();
rollback;
