begin;
select plan(1);

select is(
    (
        select array_agg(attname::text order by attnum)
        from pg_attribute where attrelid = 'idem.policies'::regclass and attnum > 0 and not attisdropped
    ),
    array[
        'name', 'ttl', 'lease', 'on_lapse', 'max_attempts', 'max_claims', 'retry_after', 'min_retention', 'tombstone',
        'required', 'methods', 'key_min_length', 'key_max_length', 'key_pattern', 'release_statuses', 'drop_headers',
        'max_body_bytes', 'max_batch', 'ignore', 'include', 'profile', 'problem_type_base', 'replay_header'
    ]
);

select * from finish();
rollback;
