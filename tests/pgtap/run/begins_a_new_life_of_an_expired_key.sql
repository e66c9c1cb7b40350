begin;
select plan(3);

create function pay(args jsonb) returns idem.response language sql as 'select row(201, null, null)::idem.response';
select idem.complete('shop', 'k', token, 200, '[]', 'old') from idem.reserve('shop', 'k', '\x01');

set local idem.clock_offset = '24 hours';
create temp table answer as
select * from idem.run('shop', 'k', '\x02', 'pay(jsonb)', '{}', 'messages');
select results_eq(
    'select outcome, attempt, status, headers, body, expires_at - created_at from answer',
    $$values ('started', 1, 201, null::jsonb, null::bytea, interval '336 hours')$$
);
select is((idem.reserve('shop', 'k', '\x02')).outcome, 'replay');
select is((idem.reserve('shop', 'k', '\x01')).outcome, 'mismatch', 'of the new request');

select * from finish();
rollback;
