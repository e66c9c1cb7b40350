begin;
select plan(2);

\ir ../refusal.psql
create temp table good (scope) as values
    ('tenant:7'), ('a b'), (' a'), ('a '), ('"a"'), ('a\b'), ('{"a": 1}'), (U&'\00e9'), (U&'\4f60\597d'),
    (U&'\+01F600'), (U&'a\00a0b'), (U&'\200d'), ('%'), ('..'), ('$$');
create temp table bad (scope) as
select 'a' || chr(n) || 'b' from generate_series(1, 31) as n union all
select chr(n) from generate_series(1, 8) as n union all
select 'a' || chr(n) from generate_series(127, 159) as n;

select set_eq(
    $$select (idem.reserve(scope, 'k')).outcome from good$$, array['started'], 'letters, marks, signs, blanks'
);
select set_eq(
    $$select pg_temp.refusal(format('select idem.reserve(%L, ''k'')', scope)) from bad$$,
    array['IK001 not_printable'], 'no control characters'
);

select * from finish();
rollback;
