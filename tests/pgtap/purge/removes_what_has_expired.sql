begin;
select plan(5);

select idem.complete('shop', k, token, 200) from (values ('a'), ('b')) as v (k), idem.reserve('shop', k);
select idem.once('mail', 'm');

select is(idem.purge(), 0::bigint, 'nothing before the expiry');
set local idem.clock_offset = '24 hours 1 second';
select is(idem.purge(), 2::bigint, 'what has expired, and no more');
select is((select string_agg(scope || ' ' || key, ', ') from idem.keys), 'mail m', 'the mark has 14 days');
select is(idem.purge(), 0::bigint, 'once');
set local idem.clock_offset = '14 days 1 second';
select is(idem.purge(), 1::bigint, 'a mark goes like any key');

select * from finish();
rollback;
