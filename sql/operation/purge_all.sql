-- It commits after each batch, which Postgres allows only without a SET clause and without SECURITY DEFINER. So it runs
-- as its caller, and every name and operator in it is qualified against the caller's search_path.
--
-- It rests after each batch for as long as that took, so that a backlog costs others little of the machine.
create or replace procedure idem.purge_all(max_rows int default 10000, max_time interval default '45 seconds')
language plpgsql as $$
declare
    started_at constant pg_catalog.timestamptz := pg_catalog.clock_timestamp();
    longest constant pg_catalog.interval := coalesce(purge_all.max_time, '45 seconds');
    batch_at pg_catalog.timestamptz;
    batch_time pg_catalog.interval;
    reached pg_catalog.text := '';
    removed pg_catalog.int8 := pg_catalog.int8 '0';
begin
    if longest operator(pg_catalog.<=) '0 seconds' or longest operator(pg_catalog.>) '36500 days' then
        raise exception using
            errcode = '22023',
            message = 'max_time must be above zero and at most 36500 days',
            detail = pg_catalog.jsonb_build_object(
                'code', 'interval_out_of_range', 'argument', 'max_time'
            )::pg_catalog.text,
            hint = 'It bounds one run; what is left is for the next one.';
    end if;

    loop
        batch_at := pg_catalog.clock_timestamp();
        perform pg_catalog.set_config('idem_private.purge_from', reached, true);
        removed := removed operator(pg_catalog.+) idem.purge(purge_all.max_rows);
        reached := pg_catalog.current_setting('idem_private.purge_reached');
        commit;
        batch_time := pg_catalog.clock_timestamp() operator(pg_catalog.-) batch_at;
        -- no rest and no batch that could last until after the end
        exit when reached operator(pg_catalog.=) ''
            or pg_catalog.clock_timestamp() operator(pg_catalog.-) started_at
                operator(pg_catalog.+) batch_time operator(pg_catalog.+) batch_time
                operator(pg_catalog.>) longest;
        perform pg_catalog.pg_sleep(pg_catalog.date_part('epoch', batch_time));
    end loop;

    -- Not a notice, which pg_cron would write into the log of the server every minute.
    raise debug using
        message = pg_catalog.format(
            '%s keys removed%s', removed,
            case when reached operator(pg_catalog.=) '' then '' else ', more have expired' end
        ),
        detail = pg_catalog.jsonb_build_object(
            'removed', removed, 'caught_up', reached operator(pg_catalog.=) ''
        )::pg_catalog.text;
end
$$;

comment on procedure idem.purge_all(int, interval) is
'Runs idem.purge until nothing is left or the time is over, and commits after each batch: a CALL of its own, outside any transaction. Any number at once share the work. Errors: 22023.';

revoke all on procedure idem.purge_all(int, interval) from public;
