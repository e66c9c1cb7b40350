-- Of 2,000 finished and 300 unfinished ones; the planner itself looks at the ends of an index.
-- What other files rolled back still has entries in the indexes, and each would be counted.
vacuum (index_cleanup on) idem_private.reservation;
begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, max_batch) values ('many', 2000);
select count(*) from idem.once_many('shop', array(select 'm' || n from generate_series(1, 2000) as n), 'many');
select count(*) from generate_series(1, 300) as n, idem.reserve('shop', 'open' || n, mode => 'leased');
analyze idem_private.reservation, idem_private.unfinished;

create function pg_temp.read() returns bigint language sql as $$
    select pg_stat_get_xact_tuples_returned('idem_private.reservation'::regclass)
        + pg_stat_get_xact_tuples_returned('idem_private.reservation_pkey'::regclass)
        + pg_stat_get_xact_tuples_returned('idem_private.reservation_expiry'::regclass)
$$;
select pg_temp.read() as before \gset
select count(*) as checks from idem.health() \gset
select cmp_ok(pg_temp.read() - :before, '<=', bigint '310', 'health');
select pg_temp.read() as before \gset
select count(*) as rows from idem.stats() \gset
select cmp_ok(pg_temp.read() - :before, '<=', bigint '310', 'stats');

select * from finish();
rollback;
