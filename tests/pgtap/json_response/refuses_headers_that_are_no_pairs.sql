begin;
select plan(14);

\ir ../refusal.psql
create temp table bad (headers) as values
    ('null'), ('{}'), ('{"a": "b"}'), ('"a"'), ('1'), ('["a"]'), ('["a", "b"]'), ('[["a"]]'), ('[["a", "b", "c"]]'),
    ('[["a", 1]]'), ('[[null, "b"]]'), ('[["a", "b"], null]'), ('[[["a", "b"], ["c", "d"]]]'), ('[{"a": "b"}]');

select is(
    pg_temp.refusal(format($$select idem.json_response(200, '{}', %L)$$, headers)), '22023 headers_not_pairs', headers
) from bad;

select * from finish();
rollback;
