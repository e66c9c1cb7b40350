begin;
select plan(5);

\ir ../refusal.psql

select is((idem.reserve('shop', 'k')).outcome, 'started', '1');
select is((idem.reserve('shop', repeat('k', 255))).outcome, 'started', '255');
select is(pg_temp.refusal($$select idem.reserve('shop', repeat('k', 256))$$), 'IK001 too_long 255', '256');
select is(
    pg_temp.refusal(
        $$select idem.reserve('shop', (select string_agg(md5(n::text), '') from generate_series(1, 94) as n))$$
    ),
    'IK001 too_long 255', '3008 that do not compress'
);
select is(pg_temp.refusal($$select idem.reserve('shop', repeat('k', 100000))$$), 'IK001 too_long 255', '100000');

select * from finish();
rollback;
