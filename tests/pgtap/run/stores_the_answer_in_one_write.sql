begin;
select plan(3);

create function pay(args jsonb) returns idem.response language sql as
$$select idem.json_response(201, '{}')$$;
create function pg_temp.writes(relation regclass) returns int[] language sql volatile as $$
    select array[
        pg_stat_get_xact_tuples_inserted(relation), pg_stat_get_xact_tuples_updated(relation),
        pg_stat_get_xact_tuples_deleted(relation)
    ]
$$;

select is((idem.run('shop', 'k', '\x01', 'pay(jsonb)', '{}')).outcome, 'started', 'it ran');
select is(pg_temp.writes('idem_private.reservation'), '{1,0,0}', 'one row is inserted and never updated');
select is(pg_temp.writes('idem_private.unfinished'), '{0,0,0}', 'nothing else is written');

select * from finish();
rollback;
