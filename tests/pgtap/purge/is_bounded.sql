begin;
select plan(8);

select idem.complete('shop', k::text, token, 200) from generate_series(1, 5) as k, idem.reserve('shop', k::text);
set local idem.clock_offset = '25 hours';
select is(idem.purge(2), 2::bigint);
select is((select string_agg(key, ' ' order by key) from idem.keys), '3 4 5', 'the oldest first');
select is(idem.purge(2), 2::bigint);
select is(idem.purge(2), 1::bigint);

select throws_ok('select idem.purge(0)', '22023', 'max_rows must be from 1 to 1000000');
select throws_ok('select idem.purge(-1)', '22023', 'max_rows must be from 1 to 1000000');
select throws_ok('select idem.purge(1000001)', '22023', 'max_rows must be from 1 to 1000000');
select lives_ok('select idem.purge(null)', 'null is the default');

select * from finish();
rollback;
