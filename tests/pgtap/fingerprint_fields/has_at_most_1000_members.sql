begin;
select plan(10);

create function pg_temp.fields(leaves int, name text = '', content_type text = 'application/json') returns text
language sql as $$
    select count(*) || ' ' || min(p collate "C")
    from jsonb_object_keys(idem.fingerprint_fields(
        case
            when content_type = 'application/json'
                then convert_to(
                    (select jsonb_object_agg(name || n, ', , ,') from generate_series(1, leaves) as n)::text, 'UTF8'
                )
            else convert_to((select string_agg(name || n, '&') from generate_series(1, leaves) as n), 'UTF8')
        end,
        content_type
    )) as p
$$;

select is(pg_temp.fields(999), '999 /1', '999 leaves');
select is(pg_temp.fields(1000), '1000 /1', '1000 leaves');
select is(pg_temp.fields(1001), '1 body', '1001 leaves');
select is(pg_temp.fields(1000, '', 'application/x-www-form-urlencoded'), '1000 /1', '1000 fields of a form');
select is(pg_temp.fields(1001, '', 'application/x-www-form-urlencoded'), '1 body', '1001 fields of a form');
select is(pg_temp.fields(1, repeat('n', 498)), '1 /' || repeat('n', 498) || '1', 'a pointer of 500 characters');
select is(pg_temp.fields(1, repeat('n', 499)), '1 body', 'of 501');
select is(pg_temp.fields(900, repeat('n', 200)), '1 body', 'pointers that are too long together');
select isnt(
    idem.fingerprint_fields(convert_to('[' || repeat('1,', 1000) || '1]', 'UTF8'), 'application/json'),
    idem.fingerprint_fields(convert_to('[' || repeat('1,', 1000) || '2]', 'UTF8'), 'application/json'),
    'one hash of the whole'
);
select is(
    idem.fingerprint_fields(convert_to('[' || repeat('1,', 1000) || '1]', 'UTF8'), 'application/json'),
    idem.fingerprint_fields(convert_to('[' || repeat('1.0,', 1000) || '1]', 'UTF8'), 'application/json'),
    'by its value'
);

select * from finish();
rollback;
