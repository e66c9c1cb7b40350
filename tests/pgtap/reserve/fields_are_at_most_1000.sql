begin;
select plan(2);

\ir ../refusal.psql

select is(
    (idem.reserve(
        'shop', 'k', fields => (select jsonb_object_agg('/' || n, 'h') from generate_series(1, 1000) as n)
    )).outcome,
    'started', '1000'
);
select is(
    pg_temp.refusal($$
        select idem.reserve(
            'shop', 'l', fields => (select jsonb_object_agg('/' || n, 'h') from generate_series(1, 1001) as n)
        )
    $$),
    'IK007 too_many_fields 1000', '1001'
);

select * from finish();
rollback;
