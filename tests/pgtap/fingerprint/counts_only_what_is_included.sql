begin;
select plan(14);

create function pg_temp.digest(body text, include text[], content_type text = 'application/json', ignore text[] = null)
returns bytea language sql as $$
    select idem.fingerprint('POST', '/', convert_to(body, 'UTF8'), content_type, ignore, include)
$$;
create temp table same (include, one, other) as values
    ('{/a}'::text[], '{"a": 1, "b": 2}', '{"a": 1, "b": 3}'),
    ('{/a/b,/1}', '{"a": {"b": 1, "c": 2}}', '{"a": {"b": 1}, "d": 3}'),
    ('{/a,/c}', '{"c": 1, "a": 2}', '{"a": 2.0, "c": 1, "b": 1}'),
    ('{/a}', '{"b": 1}', '{"c": 2}');
create temp table different (include, one, other) as values
    ('{/a}'::text[], '{"a": 1, "b": 2}', '{"a": 2, "b": 2}'),
    ('{/a}', '{"a": null}', '{}'),
    ('{/a,/b}', '{"a": 1}', '{"b": 1}'),
    ('{/a}', '{"a": {"b": 1}}', '{"a": {"b": 2}}'),
    ('{}', '{"a": 1}', '{"a": 2}');

select is(pg_temp.digest(one, include), pg_temp.digest(other, include), format('%s: %s is %s', include, one, other))
from same;
select isnt(
    pg_temp.digest(one, include), pg_temp.digest(other, include), format('%s: %s is not %s', include, one, other)
)
from different;
select is(
    pg_temp.digest('{"a": {"b": 1, "c": 2}}', '{/a}', ignore => '{/a/c}'),
    pg_temp.digest('{"a": {"b": 1, "c": 3}}', '{/a}', ignore => '{/a/c}'),
    'less what is ignored'
);
select is(
    pg_temp.digest('a=1&b=2', '{/a}', 'application/x-www-form-urlencoded'),
    pg_temp.digest('b=3&a=1', '{/a}', 'application/x-www-form-urlencoded'),
    'of a form'
);
select isnt(
    pg_temp.digest('a=1', '{/a}', 'application/x-www-form-urlencoded'),
    pg_temp.digest('a=2', '{/a}', 'application/x-www-form-urlencoded'),
    'and not another value of it'
);
select isnt(
    pg_temp.digest('a', '{/a}', 'text/plain'), pg_temp.digest('b', '{/a}', 'text/plain'),
    'bytes are taken whole'
);
select isnt(
    pg_temp.digest('{"/a": 1}', null), pg_temp.digest('{"a": 1}', '{/a}'), 'what is included is not a document of that'
);

select * from finish();
rollback;
