-- Version 8 of RFC 9562, variant 10.
begin;
select plan(1);

select set_eq(
    $$
        select idem.downstream_key('shop', n::text)::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-'
        from generate_series(1, 100) as n
    $$,
    array[true]
);

select * from finish();
rollback;
