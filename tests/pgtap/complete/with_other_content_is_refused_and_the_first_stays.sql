-- I11
begin;
select plan(11);

select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201, '[["a", "1"], ["b", "2"]]', 'x');
create temp table before as table idem_private.reservation;
create temp table other (what, answer) as values
    ('status', $$200, '[["a", "1"], ["b", "2"]]', 'x'$$),
    ('no status', $$null, '[["a", "1"], ["b", "2"]]', 'x'$$),
    ('a header', $$201, '[["a", "1"], ["b", "3"]]', 'x'$$),
    ('the order of headers', $$201, '[["b", "2"], ["a", "1"]]', 'x'$$),
    ('the case of headers', $$201, '[["A", "1"], ["b", "2"]]', 'x'$$),
    ('empty headers', $$201, '[]', 'x'$$),
    ('no headers', $$201, null, 'x'$$),
    ('the body', $$201, '[["a", "1"], ["b", "2"]]', 'y'$$),
    ('an empty body', $$201, '[["a", "1"], ["b", "2"]]', ''$$),
    ('no body', $$201, '[["a", "1"], ["b", "2"]]'$$);

select throws_ok(
    format($$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', %s)$$, answer),
    'IK002', null, what
) from other;
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');

select * from finish();
rollback;
