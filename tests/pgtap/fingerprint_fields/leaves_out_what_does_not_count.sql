begin;
select plan(5);

create function pg_temp.pointers(body text, ignore text[], include text[], content_type text = 'application/json')
returns text language sql as $$
    select coalesce(string_agg(p, ' ' order by p collate "C"), 'none')
    from jsonb_object_keys(idem.fingerprint_fields(convert_to(body, 'UTF8'), content_type, ignore, include)) as p
$$;

select is(pg_temp.pointers('{"a": {"b": 1, "c": 2}, "d": [3, 4]}', '{/a/b,/d/0}', null), '/a/c /d/1', 'ignored');
select is(pg_temp.pointers('{"a": {"b": 1, "c": 2}, "d": [3, 4]}', null, '{/a,/d/1,/e}'), '/a/b /a/c /d/1', 'included');
select is(pg_temp.pointers('{"a": 1}', null, '{/b}'), 'none', 'nothing of it');
select is(pg_temp.pointers('a=1&b=2', '{/a}', null, 'application/x-www-form-urlencoded'), '/b', 'of a form');
select is(pg_temp.pointers('a=1&b=2', null, '{/a}', 'application/x-www-form-urlencoded'), '/a', 'the same');

select * from finish();
rollback;
