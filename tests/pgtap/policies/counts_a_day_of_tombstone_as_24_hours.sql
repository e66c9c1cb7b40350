-- Across a change of the clocks: in Berlin 30 March 2031 has 23 hours.
begin;
select plan(2);

set local timezone = 'Europe/Berlin';
create function pg_temp.move_clock(until timestamptz) returns void language sql as
$$select set_config('idem.clock_offset', extract(epoch from until - clock_timestamp()) || ' seconds', true)$$;
insert into idem.policies (name, ttl, min_retention, tombstone) values ('kept', '1 hour', '1 hour', '1 day');

select pg_temp.move_clock('2031-03-29 11:00+01');
select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k', policy => 'kept');
select pg_temp.move_clock('2031-03-30 11:59+01');
select is((idem.reserve('shop', 'k')).outcome, 'expired', 'not after 23 hours');
select pg_temp.move_clock('2031-03-30 12:01+01');
select is((idem.reserve('shop', 'k')).outcome, 'started', 'but after 24');

select * from finish();
rollback;
