begin;
select plan(2);

\ir ../refusal.psql
create temp table bad (key) as
select 'a' || chr(n) || 'b' from generate_series(1, 31) as n union all
select chr(n) from generate_series(1, 8) as n union all
select 'a' || chr(n) from generate_series(127, 255) as n union all
values (U&'\+01F600'), (U&'\4f60'), (U&'a\200b'), (U&'\00a0'), (E'abc\n'), (E'\nabc'), (E'abc\r\n');

select set_eq(
    $$
        select (idem.reserve('shop', key)).outcome
        from (
            select 'a' || chr(n) || 'b' as key from generate_series(32, 126) as n union all
            select chr(n) from generate_series(35, 126) as n
        ) as good
    $$,
    array['started'], 'every printable character'
);
select set_eq(
    $$select pg_temp.refusal(format('select idem.reserve(''shop'', %L)', key)) from bad$$,
    array['IK001 not_printable'], 'and nothing else'
);

select * from finish();
rollback;
