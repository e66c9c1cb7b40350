begin;
select plan(11);

create function pg_temp.pointers(body text, content_type text = 'application/json') returns text language sql as $$
    select coalesce(string_agg(p, ' ' order by p collate "C"), 'none')
    from jsonb_object_keys(idem.fingerprint_fields(convert_to(body, 'UTF8'), content_type)) as p
$$;

select is(pg_temp.pointers('{"a": 1, "b": {"c": [true, null]}}'), '/a /b/c/0 /b/c/1', 'scalars');
select is(pg_temp.pointers('{"a": {}, "b": []}'), '/a /b', 'and what is empty');
select is(pg_temp.pointers('{"a/b": {"c~d": 1}, "": 2}'), '/ /a~1b/c~0d', 'escaped');
select is(pg_temp.pointers('1'), '', 'a scalar is the document');
select is(pg_temp.pointers('{}'), '', 'and so is an empty object');
select is(pg_temp.pointers('{"a": 1, "a": 2}'), 'body', 'repeated members have no names of their own');
select is(pg_temp.pointers('{"a": 1e100000}'), '/a', 'a huge number');
select is(pg_temp.pointers('no json'), '', 'bytes');
select is(pg_temp.pointers('{"a": 1}', 'text/plain'), '', 'of another type');
select is(pg_temp.pointers('a=1&b=2&a=3&c/d', 'application/x-www-form-urlencoded'), '/a /b /c~1d', 'a form');
select is(pg_temp.pointers('', 'application/x-www-form-urlencoded'), 'none', 'an empty form');

select * from finish();
rollback;
