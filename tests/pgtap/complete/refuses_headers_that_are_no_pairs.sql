begin;
select plan(14);

create temp table bad (headers) as values
    ('null'), ('{}'), ('{"a": "b"}'), ('"a"'), ('1'), ('["a"]'), ('["a", "b"]'), ('[["a"]]'), ('[["a", "b", "c"]]'),
    ('[["a", 1]]'), ('[[null, "b"]]'), ('[["a", "b"], null]'), ('[[["a", "b"], ["c", "d"]]]'), ('[{"a": "b"}]');
select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select throws_ok(
    format($$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200, %L)$$, headers),
    '22023', null, headers
) from bad;

select * from finish();
rollback;
