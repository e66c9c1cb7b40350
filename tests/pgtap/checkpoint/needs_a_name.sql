begin;
select plan(8);

\ir ../refusal.psql
set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create function pg_temp.refused(recovery_point text) returns text language sql as $$
    select pg_temp.refusal(format(
        $f$select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', %L)$f$, recovery_point
    ))
$$;

select is(pg_temp.refused(null), '22023 recovery_point_unfit 255', 'null');
select is(pg_temp.refused(''), '22023 recovery_point_unfit 255', 'empty');
select is(pg_temp.refused(E' \t\n'), '22023 recovery_point_unfit 255', 'blank');
select is(pg_temp.refused(repeat('c', 256)), '22023 recovery_point_unfit 255', 'too long');
select is(
    pg_temp.refusal($$select idem.checkpoint('shop', 'none', gen_random_uuid(), '')$$),
    '22023 recovery_point_unfit 255', 'whatever the reservation'
);
select is((select recovery_point from idem_private.reservation), null, 'nothing has changed');
select is(pg_temp.refused(repeat(U&'\00e9', 255)), 'not refused', 'the longest');
select is(pg_temp.refused('c'), 'not refused', 'the shortest');

select * from finish();
rollback;
