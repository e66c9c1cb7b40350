begin;
select plan(1);

select is(
    (
        select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
        from pg_attribute
        where attrelid = 'idem.reservation'::regclass and attnum > 0 and not attisdropped
    ),
    'outcome text, token uuid, attempt integer, downstream_key uuid, recovery_point text, state jsonb, status integer, '
    'headers jsonb, body bytea, mismatched text[], retry_after interval, created_at timestamp with time zone, '
    'lease_until timestamp with time zone, completed_at timestamp with time zone, expires_at timestamp with time zone'
);

select * from finish();
rollback;
