begin;
select plan(2);

create temp table tokens as
select (idem.reserve('shop', n::text)).token from generate_series(1, 100) as n;

select is((select count(distinct token) from tokens), 100::bigint, 'no two keys share a token');
select is_empty(
    $$select from tokens where token::text !~ '^.{14}4.{4}[89ab]'$$, 'tokens are random uuids (version 4)'
);

select * from finish();
rollback;
