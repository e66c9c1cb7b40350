begin;
select plan(8);

\ir ../refusal.psql
select idem.once('billing', 'm1');
create temp table before as table idem_private.reservation;

select results_eq(
    $$select outcome, attempt, status, headers, body, lease_until from idem.lookup('billing', 'm1')$$,
    $$values ('completed', 1, null::int, null::jsonb, null::bytea, null::timestamptz)$$, 'without an answer'
);
select is((idem.reserve('billing', 'm1')).outcome, 'replay');
select is((idem.reserve('billing', 'm1', '\x01')).outcome, 'mismatch', 'a request has a fingerprint');
select is(
    pg_temp.refusal(
        $$select idem.complete('billing', 'm1', '00000000-0000-0000-0000-000000000000', 200)$$
    ),
    'IK002 not_the_owner', 'and without an owner, whatever the token'
);
select is(
    pg_temp.refusal(format($$select idem.%s$$, call)), 'IK002 not_the_owner', call
)
from unnest(array[
    $$release('billing', 'm1', '00000000-0000-0000-0000-000000000000')$$,
    $$defer('billing', 'm1', '00000000-0000-0000-0000-000000000000')$$,
    $$checkpoint('billing', 'm1', '00000000-0000-0000-0000-000000000000', 'half')$$
]) as call;
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');

select * from finish();
rollback;
