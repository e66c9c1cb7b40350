begin;
select plan(37);

create temp table good (header, key) as values
    ('8e03978e', '8e03978e'), ('"8e03978e"', '8e03978e'), (' "8e03978e" ', '8e03978e'), (E'\t8e03978e\t', '8e03978e'),
    ('a', 'a'), ('"a b"', 'a b'), ('"a,b"', 'a,b'), ('"a\"b"', 'a"b'), ('"a\\b"', 'a\b'), ('"\\\""', '\"'),
    ('a;b=c', 'a;b=c'), ('Case', 'Case'), ('case', 'case'), ('"'' "', ''' '), ('{1}/?=', '{1}/?='),
    (repeat('k', 255), repeat('k', 255)), ('"' || repeat('k', 255) || '"', repeat('k', 255));
create temp table bad (header) as values
    (''), (' '), (E'\t'), ('""'), ('" "'), ('a b'), ('a,b'), ('a, a'), ('"a", "a"'), ('a"'), ('"a'), ('a\b'), ('"a\b"'),
    ('"a"b'), ('"a";b=1'), ('"a"b"'), ('"'), (repeat('k', 256)), (E'a\nb'), (E'"a\x01"');

select is(
    (select row(outcome, h.key) from idem.http_reserve('shop', header, 'POST', '/' || md5(header)) as h),
    row('started'::text, good.key),
    header
) from good where header not in ('"8e03978e"', ' "8e03978e" ', E'\t8e03978e\t', '"' || repeat('k', 255) || '"');
select is(
    (select row(outcome, h.key) from idem.http_reserve('shop', header, 'POST', '/' || md5(good.key)) as h),
    row('in_progress'::text, good.key),
    'the same key: ' || header
) from good where header in ('"8e03978e"', ' "8e03978e" ', E'\t8e03978e\t', '"' || repeat('k', 255) || '"');
select is(
    (select row(outcome, h.key, status) from idem.http_reserve('shop', header, 'POST', '/') as h),
    row('invalid'::text, null::text, 400),
    'invalid: ' || header
) from bad;

select * from finish();
rollback;
