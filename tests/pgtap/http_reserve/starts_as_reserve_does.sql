begin;
select plan(9);

set local idem.single_transaction = on;
create temp table answer as
select * from idem.http_reserve(
    'shop', '"k"', 'POST', '/orders', '{"a": 1}', 'application/json', 'leased', '2 minutes', '{"s": 1}',
    'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);

select is(
    row(outcome, key, token, attempt, state),
    row('started'::text, 'k'::text, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'::uuid, 1, '{"s": 1}'::jsonb),
    'what the owner needs'
) from answer;
select is(downstream_key, idem.downstream_key('shop', 'k'), 'with its downstream key') from answer;
select is(row(status, headers, body), row(null::int, null::jsonb, null::bytea), 'and no answer to send') from answer;
select is(lease_until - created_at, interval '2 minutes', 'the lease') from idem.lookup('shop', 'k');
select is(fingerprint, idem.fingerprint('POST', '/orders', '{"a": 1}', 'application/json'), 'the fingerprint')
from idem_private.reservation;
select is(
    fields - '{method,path,content_type}'::text[],
    idem.fingerprint_fields('{"a": 1}', 'application/json'),
    'the fields, with those of the request'
) from idem_private.reservation;
select ok(fields ?& '{method,path,content_type}', 'which are these') from idem_private.reservation;
select is(
    (
        select outcome from idem.http_reserve(
            'shop', 'k', 'POST', '/orders', '{"a": 1}', 'application/json', 'leased',
            token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
        )
    ),
    'started',
    'again, for the owner'
);
set local idem.clock_offset = '3 minutes';
update idem.policies set on_lapse = 'retry' where name = 'default';
select is(
    (
        select row(outcome, attempt, state)
        from idem.http_reserve('shop', 'k', 'POST', '/orders', '{"a": 1}', 'application/json', 'leased')
    ),
    row('started'::text, 2, '{"s": 1}'::jsonb),
    'and for the next attempt after a lapse'
);

select * from finish();
rollback;
