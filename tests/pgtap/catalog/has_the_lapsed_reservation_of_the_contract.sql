begin;
select plan(1);

select is(
    (
        select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
        from pg_attribute
        where attrelid = 'idem.lapsed_reservation'::regclass and attnum > 0 and not attisdropped
    ),
    'scope text, key text, token uuid, attempt integer, downstream_key uuid, recovery_point text, state jsonb, '
    'policy text, created_at timestamp with time zone, lapsed_at timestamp with time zone, claims integer, reason text'
);

select * from finish();
rollback;
