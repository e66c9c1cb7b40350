begin;
select plan(1);

\ir ../refusal.psql
select is(
    pg_temp.refusal($$select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged')$$),
    'IK003 no_such_reservation'
);

select * from finish();
rollback;
