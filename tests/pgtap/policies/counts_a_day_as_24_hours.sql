-- Across a change of the clocks: in Berlin 30 March 2031 has 23 hours.
begin;
select plan(3);

set local timezone = 'Europe/Berlin';
select set_config('idem.clock_offset', (timestamptz '2031-03-29 12:00+01' - clock_timestamp())::text, true);
insert into idem.policies (name, ttl, min_retention) values ('ttl', '1 day', '1 hour'), ('kept', '1 hour', '2 days');

create temp table first as select * from idem.reserve('shop', 'ttl', policy => 'ttl');
select is((select extract(epoch from expires_at - created_at) from first), 86400::numeric, 'ttl');
select idem.complete('shop', 'kept', token) from idem.reserve('shop', 'kept', policy => 'kept');
select is(
    (select extract(epoch from expires_at - completed_at) from idem.lookup('shop', 'kept')), 172800::numeric,
    'min_retention'
);
set local timezone = 'UTC';
select is(
    (select extract(epoch from expires_at - completed_at) from idem.lookup('shop', 'kept')), 172800::numeric,
    'in another time zone'
);

select * from finish();
rollback;
