begin;
select plan(9);

set local idem.single_transaction = on;
insert into idem.policies (name, profile, required, max_body_bytes) values ('stripe', 'stripe', true, 100);
select idem.http_reserve('acct', 'live', 'POST', '/v1/charges', mode => 'leased', policy => 'stripe');
select idem.http_complete('acct', 'failed', token, 500, '[["A", "b"]]', '{"error": {}}')
from idem.http_reserve('acct', 'failed', 'POST', '/v1/charges', 'amount=1', 'application/x-www-form-urlencoded',
    policy => 'stripe');
create temp table answer as
select name, a.status, a.headers, convert_from(a.body, 'UTF8')::jsonb as body
from (
    values
    ('missing', null, ''), ('invalid', 'a b', ''), ('in use', 'live', ''), ('other', 'failed', 'amount=2'),
    ('same', 'failed', 'amount=1')
) as call (name, header, body_)
cross join lateral idem.http_reserve('acct', header, 'POST', '/v1/charges', convert_to(body_, 'UTF8'),
    case when body_ <> '' then 'application/x-www-form-urlencoded' end, policy => 'stripe') as a;

select is(row(status, body -> 'error' ->> 'type'), row(400, 'invalid_request_error'::text), 'no key')
from answer where name = 'missing';
select is(row(status, body -> 'error' ->> 'type'), row(400, 'invalid_request_error'::text), 'no good key')
from answer where name = 'invalid';
select is(row(status, body -> 'error' ->> 'type'), row(400, 'idempotency_error'::text), 'other parameters')
from answer where name = 'other';
select is(body -> 'error' -> 'mismatched', '["/amount"]'::jsonb, 'which are named') from answer where name = 'other';
select is(
    row(status, body -> 'error' ->> 'type', body -> 'error' ->> 'code'),
    row(409, 'idempotency_error'::text, 'idempotency_key_in_use'::text), 'another request is at work'
) from answer where name = 'in use';
select is(headers, '[["Content-Type", "application/json"], ["Retry-After", "1"]]'::jsonb, 'for so long')
from answer where name = 'in use';
select is((select count(*) from answer where body -> 'error' ->> 'message' <> ''), 4::bigint, 'each with a message');
select is(row(status, body), row(500, '{"error": {}}'::jsonb), 'a failure is stored like any answer')
from answer where name = 'same';
select is(headers, '[["A", "b"], ["Idempotent-Replayed", "true"]]'::jsonb, 'and marked as Stripe does')
from answer where name = 'same';

select * from finish();
rollback;
