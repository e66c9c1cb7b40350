-- What idem.complete answers with false: an earlier transaction stored this, so that nothing done again may commit.
begin;
select plan(2);

\ir ../refusal.psql
select idem.reserve('shop', 'k', '\x01', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.run_end('shop', 'k', '\x01', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', row(201, null, 'x'));

select is(
    pg_temp.refusal(
        $$select idem.run_end('shop', 'k', '\x01', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', row(201, null, 'x'))$$
    ),
    'IK002 already_completed'
);
select is((idem.reserve('shop', 'k', '\x01')).body, 'x', 'the first stays');

select * from finish();
rollback;
