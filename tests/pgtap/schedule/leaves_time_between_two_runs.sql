-- What a run may take, by the schedule: the one that is made up, and the longest that is accepted.
begin;
select plan(15);
\ir ../refusal.psql

create function pg_temp.command(wanted text, longest interval default null) returns text language plpgsql as $$
declare
    detail text;
begin
    perform idem.schedule(wanted, max_time => longest);
exception when sqlstate '0A000' then
    get stacked diagnostics detail = pg_exception_detail;
    return substring(detail::jsonb #>> '{statements,0}' from '''''([0-9.]+ seconds)''''');
end
$$;

select is(pg_temp.command(null), '45 seconds', 'once a minute');
select is(pg_temp.command('*/5 * * * *'), '45 seconds', 'no more where there is more time');
select is(pg_temp.command('30 seconds'), '22.5 seconds', 'three quarters of what there is');
select is(pg_temp.command('1 second'), '0.75 seconds');
select is(pg_temp.command('* * * * *', '59 seconds'), '59 seconds');
select is(pg_temp.command('*/5 * * * *', '299 seconds'), '299 seconds');
select is(pg_temp.command('17 * * * *', '59 minutes'), '3540 seconds');
select is(pg_temp.command('17 3 * * *', '5 hours'), '18000 seconds');

select is(pg_temp.refusal($$select idem.schedule(max_time => '1 minute')$$), '22023 max_time_not_below_period');
select is(
    pg_temp.refusal($$select idem.schedule('*/5 * * * *', max_time => '5 minutes')$$), '22023 max_time_not_below_period'
);
select is(
    pg_temp.refusal($$select idem.schedule('*/7 * * * *', max_time => '5 minutes')$$), '22023 max_time_not_below_period',
    'there are four minutes between 56 and the full hour'
);
select is(
    pg_temp.refusal($$select idem.schedule('1,2 * * * *', max_time => '2 minutes')$$), '22023 max_time_not_below_period'
);
select is(
    pg_temp.refusal($$select idem.schedule('30 seconds', max_time => '30 seconds')$$), '22023 max_time_not_below_period'
);
select is(pg_temp.refusal($$select idem.schedule(max_time => '0')$$), '22023 interval_out_of_range');
select is(pg_temp.refusal('select idem.schedule(max_rows => 0)'), '22023 max_rows_out_of_range 1000000');

select * from finish();
rollback;
