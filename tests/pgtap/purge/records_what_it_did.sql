begin;
select plan(2);

select results_eq(
    'select ended_at, removed, caught_up from idem_private.last_purge', 'values (null::timestamptz, 0::bigint, false)',
    'it has never run'
);
select idem.complete('shop', k::text, token, 200) from generate_series(1, 3) as k, idem.reserve('shop', k::text);
set local idem.clock_offset = '25 hours';
select idem.purge(2);
select idem.purge(2);
select results_eq(
    $$
        select ended_at > clock_timestamp() + interval '24 hours', ended_at >= started_at, removed, caught_up
        from idem_private.last_purge
    $$,
    'values (true, true, 1::bigint, true)', 'the last batch'
);

select * from finish();
rollback;
