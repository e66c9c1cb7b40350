begin;
select plan(5);
\ir ../refusal.psql

create function pg_temp.told(statement text) returns table (statements jsonb, hint text) language plpgsql as $$
declare
    detail text;
begin
    execute statement;
exception when others then
    get stacked diagnostics detail = pg_exception_detail, hint = pg_exception_hint;
    statements := detail::jsonb -> 'statements';
    return next;
end
$$;

select is(pg_temp.refusal('select idem.schedule()'), '0A000 no_pg_cron');
create temp table told as select * from pg_temp.told('select idem.schedule()');
select is(
    (select statements ->> 0 from told),
    format(
        'select cron.schedule_in_database(%L, ''* * * * *'', ''call idem.purge_all(10000, ''''45 seconds'''')'', %L);',
        'pyidem purge ' || current_database(), current_database()
    )
);
select ok((select hint like '%' || (statements ->> 0) || '%' from told), 'the hint can be pasted');
select ok(
    (
        select statements ->> 1 like format('select cron.schedule(%%, ''0 * * * *'', %%database = ''''%s''''%%);', current_database())
        from told
    ),
    'and what trims the records of its runs'
);
select is(
    (
        select statements ->> 0
        from pg_temp.told($$select idem.schedule('*/5 * * * *', 500, '2 minutes', 'it''s mine')$$)
    ),
    format(
        'select cron.schedule_in_database(''it''''s mine'', ''*/5 * * * *'', ''call idem.purge_all(500, ''''120 seconds'''')'', %L);',
        current_database()
    )
);

select * from finish();
rollback;
