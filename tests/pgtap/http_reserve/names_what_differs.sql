begin;
select plan(15);

create function pg_temp.completed(key text, path text, body text, content_type text) returns boolean language sql as $$
    select idem.complete('shop', key, token, 200)
    from idem.http_reserve('shop', key, 'POST', path, convert_to(body, 'UTF8'), content_type)
$$;
create function pg_temp.problem(key text, path text, body text, content_type text, method text = 'POST') returns jsonb
language sql as $$
    select convert_from(answer.body, 'UTF8')::jsonb
    from idem.http_reserve('shop', key, method, path, convert_to(problem.body, 'UTF8'), content_type) as answer
$$;
create function pg_temp.differs(key text, path text, body text, content_type text, method text = 'POST') returns text
language sql as $$
    select problem ->> 'mismatched' from pg_temp.problem(key, path, body, content_type, method) as problem
$$;
select pg_temp.completed('k', '/a', '{"amount": 1, "to": {"iban": "secret"}}', 'application/json');
select pg_temp.completed('form', '/a', 'a=1&b=2', 'application/x-www-form-urlencoded');
select pg_temp.completed('many', '/a', (select jsonb_object_agg('m' || n, 1) from generate_series(100, 199) as n)::text,
    'application/json');
select pg_temp.completed('thousand', '/a', (select jsonb_object_agg('m' || n, 1)
from generate_series(1, 1000) as n)::text,
    'application/json');

select is(
    pg_temp.differs('k', '/a', '{"amount": 2, "to": {"iban": "secret"}}', 'application/json'), '["/amount"]',
    'changed'
);
select is(
    pg_temp.differs('k', '/a', '{"amount": 1, "memo": 1}', 'application/json'), '["/memo", "/to/iban"]',
    'added and removed'
);
select is(
    pg_temp.differs('k', '/b', '{"amount": 1, "to": {"iban": "secret"}}', 'application/json'), '["path"]', 'the path'
);
select is(
    pg_temp.differs('k', '/a', '{"amount": 1, "to": {"iban": "secret"}}', 'application/json', 'PATCH'), '["method"]',
    'the method'
);
select is(
    pg_temp.differs('k', '/a', '{"amount": 1, "to": {"iban": "secret"}}', 'application/x+json'), '["content_type"]',
    'the media type'
);
select is(pg_temp.differs('form', '/a', 'a=1&b=3', 'application/x-www-form-urlencoded'), '["/b"]', 'a field of a form');
select is(
    pg_temp.differs('form', '/a', 'b=2&a=1', 'application/x-www-form-urlencoded'), '["body"]',
    'the order of a form'
);
select is(
    pg_temp.differs('k', '/a', '{"amount": 1, "to": {"iban": "secret"}, "a": 1, "a": 2}', 'application/json'),
    '["body"]',
    'repeated members: the body as a whole'
);
select is(
    pg_temp.differs('many', '/a', (select jsonb_agg(n) from generate_series(1, 1001) as n)::text, 'application/json'),
    '["body"]',
    'more than can be named'
);
select is(
    pg_temp.differs('k', '/a', '{', 'application/json'), '["", "/amount", "/to/iban"]', 'no JSON'
);
select unalike(
    (
        select string_agg(p, ' ')
        from unnest(array[
            pg_temp.problem('k', '/a', '{"amount": 2, "to": {"iban": "other"}}', 'application/json')::text,
            pg_temp.problem('k', '/secretpath', '{', 'application/json')::text
        ]) as p
    ),
    '%secret%',
    'never a value'
);
select is(
    (
        select jsonb_array_length(problem -> 'mismatched') || ' of ' || (problem ->> 'mismatched_count')
        from pg_temp.problem('many', '/a', '{}', 'application/json') as problem
    ),
    '20 of 101',
    'a long list is cut, and counted'
);
select is(
    (
        select problem -> 'mismatched' ->> 0 from pg_temp.problem('many', '/a', '{}', 'application/json') as problem
    ),
    '',
    'an empty object is a leaf, and the first of the names'
);
select is(
    pg_temp.differs(
        'thousand', '/a',
        (select jsonb_object_agg('m' || n, case n when 777 then 2 else 1 end) from generate_series(1, 1000) as n)::text,
        'application/json'
    ),
    '["/m777"]',
    'one of a thousand leaves'
);
select is(
    (
        select problem ->> 'mismatched_count'
        from pg_temp.problem('k', '/b', '{"amount": 1}', 'application/json') as problem
    ),
    '2',
    'what is not cut is counted too'
);

select * from finish();
rollback;
