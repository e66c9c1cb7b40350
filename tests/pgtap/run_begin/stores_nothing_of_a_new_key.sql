begin;
select plan(3);

create function pay(args jsonb) returns idem.response language sql as 'select row(201, null, null)::idem.response';

select results_eq(
    $$select outcome, attempt, token from idem.run_begin('shop', 'k', '\x01', 'pay(jsonb)')$$,
    $$values ('started', 1, null::uuid)$$
);
select is_empty('table idem_private.reservation');
select lives_ok('set constraints all immediate', 'there is nothing to complete');

select * from finish();
rollback;
