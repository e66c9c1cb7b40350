begin;
select plan(7);

\ir ../refusal.psql
create function pay(args jsonb) returns idem.response language sql as 'select row(201, null, null)::idem.response';

select is(pg_temp.refusal($$select idem.run_begin(null, 'k', null, 'pay(jsonb)')$$), 'IK001 null');
select is(pg_temp.refusal($$select idem.run_begin('shop', null, null, 'pay(jsonb)')$$), 'IK001 null');
select is(pg_temp.refusal($$select idem.run_begin('shop', '', null, 'pay(jsonb)')$$), 'IK001 empty');
select is(pg_temp.refusal($$select idem.run_begin(E'a\tb', 'k', null, 'pay(jsonb)')$$), 'IK001 not_printable');
select is(
    pg_temp.refusal($$select idem.run_begin('shop', 'k', null, 'pay(jsonb)', 'none')$$), 'IK006 no_such_policy'
);
select is(
    pg_temp.refusal($$select idem.run_begin('shop', 'k', null, 'idem.version()')$$), '22023 handler_unfit'
);
select is(pg_temp.refusal($$select idem.run_begin('shop', 'k', null, null)$$), '22023 handler_unfit');

select * from finish();
rollback;
