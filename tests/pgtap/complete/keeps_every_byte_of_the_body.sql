begin;
select plan(2);

create temp table bodies (key, body) as values
    ('every byte', (select string_agg(set_byte('\x00', 0, n), '' order by n) from generate_series(0, 255) as n)),
    ('json', convert_to('{"b":1,  "a":1.0,"a":2}', 'UTF8')),
    ('not a number', 'NaN'::bytea),
    ('json null', 'null'::bytea),
    ('zero', '0'::bytea),
    ('false', 'false'::bytea),
    ('a line', E'\\x0d0a'::bytea),
    ('no UTF-8', '\xc328ff'::bytea),
    ('NUL', '\x00'::bytea),
    ('empty', ''::bytea),
    ('none', null);
select idem.complete('shop', b.key, r.token, 200, null, b.body)
from bodies as b cross join lateral idem.reserve('shop', b.key) as r;

select results_eq($$select key, (idem.reserve('shop', key)).body from bodies$$, 'table bodies', 'a replay');
select results_eq($$select key, (idem.lookup('shop', key)).body from bodies$$, 'table bodies', 'a lookup');

select * from finish();
rollback;
