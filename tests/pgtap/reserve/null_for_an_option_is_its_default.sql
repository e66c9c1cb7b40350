begin;
select plan(3);

create temp table answer as
select * from idem.reserve('shop', 'k', null, null, null, null, null, null, null);

select results_eq(
    'select outcome, lease_until, state, expires_at - created_at from answer',
    $$values ('started', null::timestamptz, null::jsonb, interval '24 hours')$$,
    'atomic, under the default policy'
);
select isnt((select token from answer), null, 'with a token of its own');
select is(
    (idem.reserve('shop', 'k')).outcome, 'in_progress', 'and the same fingerprint as a call that names none'
);

select * from finish();
rollback;
