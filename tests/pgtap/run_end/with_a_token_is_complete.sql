begin;
select plan(7);

\ir ../refusal.psql
set local idem.single_transaction = on;
select idem.reserve('shop', 'k', '\x01', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('shop', 'leased', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(
    (idem.run_end('shop', 'k', '\x02', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', row(201, null, 'x'))).status, 201,
    'the owner completes'
);
select is((idem.reserve('shop', 'k', '\x01')).outcome, 'replay', 'under the fingerprint of its reservation');
select is((idem.reserve('shop', 'k', '\x02')).outcome, 'mismatch', 'and no other');
select is(
    pg_temp.refusal(
        $$select idem.run_end('shop', 'k', '\x01', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', row(500, null, 'y'))$$
    ),
    'IK002 already_completed', 'but once'
);
select is((idem.reserve('shop', 'k', '\x01')).body, 'x', 'the first stays');
set local idem.single_transaction = off;
select is(
    pg_temp.refusal(
        $$select idem.run_end('shop', 'leased', '\x01', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', row(201, null, null))$$
    ),
    'IK004 same_transaction', 'and no leased key in the transaction that took it'
);
select is((idem.lookup('shop', 'leased')).outcome, 'in_progress');

select * from finish();
rollback;
