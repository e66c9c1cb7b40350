begin;
select plan(14);

create function pg_temp.digest(body text) returns bytea language sql as $$
    select idem.fingerprint('POST', '/', convert_to(body, 'UTF8'), 'application/json')
$$;
create temp table bad (body) as values
    (''), (' '), ('{'), ('{"a": 1,}'), ('[NaN]'), ('["\u0000"]'), ('["\ud800"]'), ('[1e131072]'), ('[1e-16384]');

select isnt(pg_temp.digest(body), pg_temp.digest(body || ' '), 'by its bytes: ' || body) from bad;
select is(
    pg_temp.digest(repeat('[', 100) || repeat(']', 100)),
    pg_temp.digest(repeat('[', 100) || ' ' || repeat(']', 100)),
    'nested 100 deep: by its value'
);
select isnt(
    pg_temp.digest(repeat('[', 101) || repeat(']', 101)),
    pg_temp.digest(repeat('[', 101) || ' ' || repeat(']', 101)),
    'nested 101 deep: by its bytes'
);
select isnt(
    pg_temp.digest(repeat('{"a":', 100) || '[]' || repeat('}', 100)),
    pg_temp.digest(repeat('{"a":', 100) || '[ ]' || repeat('}', 100)),
    'objects count as arrays do'
);
select is(
    pg_temp.digest('{"a":' || repeat('[', 99) || repeat(']', 99) || ',"a":1}'),
    pg_temp.digest('{"a":' || repeat('[', 99) || repeat(']', 99) || ', "a":1}'),
    'a member that comes again counts as any other: nested 100 deep'
);
select isnt(
    pg_temp.digest('{"a":' || repeat('[', 100) || repeat(']', 100) || ',"a":1}'),
    pg_temp.digest('{"a":' || repeat('[', 100) || repeat(']', 100) || ', "a":1}'),
    'and 101 deep'
);

select * from finish();
rollback;
