begin;
select plan(1);

select is(
    (
        select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
        from pg_attribute
        where attrelid = 'idem.response'::regclass and attnum > 0 and not attisdropped
    ),
    'status integer, headers jsonb, body bytea'
);

select * from finish();
rollback;
