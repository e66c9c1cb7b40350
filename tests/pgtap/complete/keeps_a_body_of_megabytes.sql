begin;
select plan(1);

create temp table large as
select string_agg(sha256(n::text::bytea), '' order by n) as body from generate_series(1, 131072) as n;
select idem.complete('shop', 'k', token, 200, null, (table large)) from idem.reserve('shop', 'k');

select ok((select r.body = l.body and length(l.body) = 4194304 from large as l, idem.reserve('shop', 'k') as r));

select * from finish();
rollback;
