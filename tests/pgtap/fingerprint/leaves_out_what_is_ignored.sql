begin;
select plan(17);

create function pg_temp.digest(body text, ignore text[], content_type text = 'application/json') returns bytea
language sql as $$
    select idem.fingerprint('POST', '/', convert_to(body, 'UTF8'), content_type, ignore => ignore)
$$;
create temp table same (ignore, one, other) as values
    ('{/a}'::text[], '{"a": 1, "b": 2}', '{"a": 2, "b": 2}'),
    ('{/a}', '{"a": 1, "b": 2}', '{"b": 2}'),
    ('{/a/b,/c}', '{"a": {"b": 1}, "c": 1}', '{"a": {"b": [2]}, "c": {}}'),
    ('{/a~1b,/c~0d}', '{"a/b": 1, "c~d": 1, "e": 1}', '{"a/b": 2, "c~d": 2, "e": 1}'),
    ('{/0,/1}', '[1, 2, 3]', '[8, 9, 3]'),
    ('{/0/a}', '[{"a": 1}]', '[{"a": 2}]'),
    ('{/}', '{"": 1}', '{"": 2}'),
    ('{""}', '{"a": 1}', '[2]');
create temp table different (ignore, one, other) as values
    ('{/a}'::text[], '{"a": 1, "b": 2}', '{"a": 1, "b": 3}'),
    ('{/a}', '{"b": {"a": 1}}', '{"b": {"a": 2}}'),
    ('{/0}', '[1, 2]', '[2]'),
    ('{/-1}', '[1]', '[2]'),
    ('{/00}', '[1]', '[2]'),
    ('{/-}', '[1]', '[2]');

select is(pg_temp.digest(one, ignore), pg_temp.digest(other, ignore), format('%s: %s is %s', ignore, one, other))
from same;
select isnt(pg_temp.digest(one, ignore), pg_temp.digest(other, ignore), format('%s: %s is not %s', ignore, one, other))
from different;
select is(
    pg_temp.digest('a=1&b=2&a=3', '{/a}', 'application/x-www-form-urlencoded'),
    pg_temp.digest('a=4&b=2', '{/a}', 'application/x-www-form-urlencoded'),
    'all fields of a form that have the name'
);
select isnt(
    pg_temp.digest('a', '{/a}', 'text/plain'), pg_temp.digest('b', '{/a}', 'text/plain'),
    'bytes are taken whole'
);
select is(
    pg_temp.digest('{"a": 1}', '{}'), pg_temp.digest('{"a": 1}', null), 'nothing to ignore is the default'
);

select * from finish();
rollback;
