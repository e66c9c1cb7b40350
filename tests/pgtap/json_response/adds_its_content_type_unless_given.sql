begin;
select plan(6);

select is(
    (idem.json_response(200, '{}')).headers, '[["content-type", "application/json"]]', 'without headers'
);
select is(
    (idem.json_response(200, '{}', '[]')).headers, '[["content-type", "application/json"]]', 'with empty ones'
);
select is(
    (idem.json_response(200, '{}', '[["b", "1"], ["a", "2"], ["b", "1"]]')).headers,
    '[["content-type", "application/json"], ["b", "1"], ["a", "2"], ["b", "1"]]',
    'before others, which keep order and repeats'
);
select is(
    (idem.json_response(200, '{}', '[["a", "1"], ["Content-Type", "application/problem+json"]]')).headers,
    '[["a", "1"], ["Content-Type", "application/problem+json"]]',
    'not where there is one, whatever its case'
);
select is(
    (idem.json_response(200, '{}', '[["x", "content-type"], ["x-content-type", ""]]')).headers -> 0,
    '["content-type", "application/json"]', 'other names and values are none'
);
select is(
    (idem.json_response(200, '{}', '[["content-type", ""]]')).headers, '[["content-type", ""]]', 'an empty one is one'
);

select * from finish();
rollback;
