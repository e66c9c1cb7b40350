begin;
select plan(8);

\ir ../refusal.psql
select is(pg_temp.refusal($$select idem.run_end(null, 'k', null, null, row(201, null, null))$$), 'IK001 null');
select is(pg_temp.refusal($$select idem.run_end('shop', null, null, null, row(201, null, null))$$), 'IK001 null');
select is(pg_temp.refusal($$select idem.run_end('shop', '"k"', null, null, row(201, null, null))$$), 'IK001 quoted');
select is(
    pg_temp.refusal(format($$select idem.run_end(%L, 'k', null, null, row(201, null, null))$$, repeat('s', 256))),
    'IK001 too_long 255'
);
select is(
    pg_temp.refusal($$select idem.run_end('shop', 'k', null, null, row(201, null, null), 'none')$$), 'IK006 no_such_policy'
);
select is(
    pg_temp.refusal($$select idem.run_end('shop', 'k', null, null, row(201, '{"a": "b"}', null))$$),
    '22023 headers_not_pairs'
);
select is(
    pg_temp.refusal($$select idem.run_end('shop', ' ', null, gen_random_uuid(), row(201, null, null))$$), 'IK001 blank'
);
select is_empty('table idem_private.reservation', 'nothing is stored');

select * from finish();
rollback;
