begin;
select plan(9);
\ir ../refusal.psql

select is(pg_temp.refusal($$select idem.http_reserve(null, 'k', 'POST', '/')$$), 'IK001 null', 'no scope');
select is(pg_temp.refusal($$select idem.http_reserve('', 'k', 'POST', '/')$$), 'IK001 empty', 'an empty scope');
select is(
    pg_temp.refusal($$select idem.http_reserve('s', 'k', 'POST', '/', policy => 'x')$$), 'IK006 no_such_policy',
    'policy'
);
select is(
    pg_temp.refusal($$select idem.http_reserve('s', null, 'GET', '/', policy => 'x')$$), 'IK006 no_such_policy',
    'also where nothing is protected'
);
select is(pg_temp.refusal($$select idem.http_reserve('s', 'k', null, '/')$$), '22023 null', 'no method');
select is(pg_temp.refusal($$select idem.http_reserve('s', 'k', 'GET', null)$$), '22023 null', 'no path');
select is(
    pg_temp.refusal($$select idem.http_reserve('s', 'k', 'POST', '/', mode => 'x')$$), '22023 unknown_mode',
    'mode'
);
select is(
    pg_temp.refusal($$select idem.http_reserve('s', 'k', 'POST', '/', lease => '1 s')$$), '22023 lease_without_leased',
    'lease'
);
create temp table written ();
select is(
    pg_temp.refusal($$select idem.http_reserve('s', 'k', 'POST', '/', mode => 'leased')$$),
    'IK004 transaction_has_written',
    'leased, in a transaction that has written'
);

select * from finish();
rollback;
