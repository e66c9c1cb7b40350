begin;
select plan(22);

set local idem.single_transaction = on;
insert into idem.policies (name, required, tombstone, problem_type_base, retry_after)
values ('strict', true, '1 day', 'https://example.com/problems/', '7 seconds');
select idem.http_reserve('shop', 'live', 'POST', '/', mode => 'leased', policy => 'strict');
select idem.http_reserve('shop', 'short', 'POST', '/', mode => 'leased', lease => '2.5 seconds', policy => 'strict');
select idem.defer('shop', 'lapsed', token)
from idem.http_reserve('shop', 'lapsed', 'POST', '/', mode => 'leased', policy => 'strict');
select idem.complete('shop', 'done', token, 200)
from idem.http_reserve('shop', 'done', 'POST', '/', policy => 'strict');

create temp table answer as
select name, a.outcome, a.status, a.headers, convert_from(a.body, 'UTF8')::jsonb as problem
from (
    values
    ('missing', null, '/'), ('invalid', 'a b', '/'), ('in_progress', 'live', '/'), ('short', 'short', '/'),
    ('unresolved', 'lapsed', '/'), ('mismatch', 'done', '/other')
) as call (name, header, path)
cross join lateral idem.http_reserve('shop', header, 'POST', path, policy => 'strict') as a;
set local idem.clock_offset = '25 hours';
insert into answer
select 'expired', a.outcome, a.status, a.headers, convert_from(a.body, 'UTF8')::jsonb
from idem.http_reserve('shop', 'done', 'POST', '/', policy => 'strict') as a;

select is(
    (select row(a.status, a.problem ->> 'code') from answer as a where a.name = e.outcome and a.outcome = e.outcome),
    row(e.status, e.code),
    e.outcome
)
from (
    values
    ('missing', 400, 'idempotency_key_missing'),
    ('invalid', 400, 'idempotency_key_invalid'),
    ('mismatch', 422, 'idempotency_key_reused'),
    ('in_progress', 409, 'idempotency_request_in_progress'),
    ('unresolved', 409, 'idempotency_outcome_unknown'),
    ('expired', 410, 'idempotency_key_expired')
) as e (outcome, status, code);
select is(
    problem ->> 'type', 'https://example.com/problems/' || (problem ->> 'code'),
    name || ': the type leads to its description'
) from answer where name <> 'short';
select ok(
    (problem ->> 'status')::int = status and problem ->> 'title' <> '' and problem ->> 'detail' <> '',
    name || ': the members of RFC 9457'
) from answer where name <> 'short';
select is(
    (select string_agg(name, ' ' order by name) from answer
    where headers @> '[["Content-Type", "application/problem+json"]]' and jsonb_array_length(headers) = 1),
    'expired invalid mismatch missing',
    'their media type'
);
select is(
    (select jsonb_object_agg(name, headers) from answer where jsonb_array_length(headers) > 1),
    jsonb_build_object(
        'in_progress', '[["Content-Type", "application/problem+json"], ["Retry-After", "7"]]'::jsonb,
        'short', '[["Content-Type", "application/problem+json"], ["Retry-After", "3"]]'::jsonb,
        'unresolved', '[["Content-Type", "application/problem+json"], ["Retry-After", "7"]]'::jsonb
    ),
    'and when to try again, in whole seconds'
);
select is(
    (
        select convert_from(body, 'UTF8')::jsonb ->> 'type' from idem.http_reserve('shop', 'a b', 'POST', '/')
    ),
    'about:blank',
    'without a base there is nothing to describe it'
);
select is((select count(*) from answer where problem ->> 'title' is null), 0::bigint, 'each has a title');

select * from finish();
rollback;
