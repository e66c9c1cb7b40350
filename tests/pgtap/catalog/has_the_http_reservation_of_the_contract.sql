begin;
select plan(1);

select is(
    (
        select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
        from pg_attribute
        where attrelid = 'idem.http_reservation'::regclass and attnum > 0 and not attisdropped
    ),
    'outcome text, key text, token uuid, attempt integer, downstream_key uuid, recovery_point text, state jsonb, '
    'status integer, headers jsonb, body bytea'
);

select * from finish();
rollback;
