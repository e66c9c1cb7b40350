begin;
select plan(2);

\ir ../refusal.psql
select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(
    pg_temp.refusal($$select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'charged')$$),
    'IK004 other_mode'
);
select is(
    idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201), true, 'its owner may go on'
);

select * from finish();
rollback;
