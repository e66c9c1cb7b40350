begin;
select plan(1);

create temp table answers (key, headers) as values
    ('order', '[["b", "1"], ["a", "2"], ["b", "3"], ["B", "1"], ["b", "1"]]'::jsonb),
    ('values', '[["x", ""], ["y", " "], ["z", "\"a\", b;c=\u00e9"]]'),
    ('empty', '[]'),
    ('none', null);
select idem.complete('shop', a.key, r.token, 200, a.headers)
from answers as a cross join lateral idem.reserve('shop', a.key) as r;

select results_eq($$select key, (idem.reserve('shop', key)).headers from answers$$, 'table answers');

select * from finish();
rollback;
