begin;
select plan(3);

create function as_told(args jsonb) returns idem.response language sql as
$$select row((args ->> 'status')::int, args -> 'headers', convert_to(args ->> 'body', 'UTF8'))::idem.response$$;
create function nothing(args jsonb) returns idem.response language sql as 'select null::idem.response';
create temp table told (key, args) as values
    ('ok', '{"status": 200, "headers": [["a", "b"]], "body": "x"}'::jsonb),
    ('unauthorized', '{"status": 401, "headers": []}'), ('too early', '{"status": 425}'),
    ('too many', '{"status": 429}'), ('timeout', '{"status": 408}'), ('error', '{"status": 500}'),
    ('unavailable', '{"status": 503}'), ('zero', '{"status": 0}'), ('negative', '{"status": -1}'),
    ('no body', '{"status": 204}'), ('empty body', '{"status": 200, "body": ""}'), ('nothing', '{}');

select set_eq(
    $$select (idem.run('shop', key, null, 'as_told(jsonb)', args)).outcome from told$$, array['started'],
    'whatever the status'
);
select results_eq(
    $$select t.key, a.outcome, a.status, a.headers, a.body
      from told as t cross join lateral idem.reserve('shop', t.key) as a$$,
    $$select key, 'replay', (args ->> 'status')::int, args -> 'headers', convert_to(args ->> 'body', 'UTF8')
      from told$$,
    'it is the answer'
);
select results_eq(
    $$select outcome, status, headers, body from idem.run('shop', 'null', null, 'nothing(jsonb)', '{}')
      union all select outcome, status, headers, body from idem.reserve('shop', 'null')$$,
    $$values
        ('started', null::int, null::jsonb, null::bytea), ('replay', null::int, null::jsonb, null::bytea)$$,
    'a handler may return null'
);

select * from finish();
rollback;
