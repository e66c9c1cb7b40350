-- Across a change of the clocks: in Berlin 30 March 2031 has 23 hours, 26 October 2031 has 25.
begin;
select plan(3);

set local idem.single_transaction = on;
set local timezone = 'Europe/Berlin';
select set_config('idem.clock_offset', (timestamptz '2031-03-29 12:00+01' - clock_timestamp())::text, true);

select is(
    (select extract(epoch from lease_until - created_at) from idem.reserve('shop', 'a', null, 'leased', '1 day')),
    86400::numeric, 'a short day'
);
select is(
    (select extract(epoch from lease_until - created_at) from idem.reserve('shop', 'b', null, 'leased', '1 month')),
    2592000::numeric, 'a month is 30 days'
);
select set_config('idem.clock_offset', (timestamptz '2031-10-25 12:00+02' - clock_timestamp())::text, true);
select is(
    (select extract(epoch from lease_until - created_at) from idem.reserve('shop', 'c', null, 'leased', '1 day')),
    86400::numeric, 'a long day'
);

select * from finish();
rollback;
