begin;
select plan(13);

insert into idem.policies (
    name, required, methods, key_min_length, key_max_length, key_pattern, ttl, tombstone, ignore, include,
    problem_type_base
) values (
    'strict', true, '{PUT}', 8, 36, '^[0-9a-f-]+$', '2 days', '1 hour', '{/nonce}', '{/a,/b}', 'https://example.com/'
);
insert into idem.policies (name, profile, replay_header) values ('stripe', 'stripe', 'X-Replayed');
create temp table document as
select name, idem.policy_document(name) as d from idem.policies where name in ('default', 'strict', 'stripe');

select is(d -> 'header', '"Idempotency-Key"'::jsonb, 'where the key is') from document where name = 'default';
select is(
    row(d ->> 'required', d ->> 'methods'), row('true'::text, '["PUT"]'::text), 'whether and when it must be there'
) from document where name = 'strict';
select is(
    (d -> 'key') - 'syntax', '{"min_length": 8, "max_length": 36, "pattern": "^[0-9a-f-]+$"}'::jsonb,
    'what it looks like'
) from document where name = 'strict';
select is(
    row(d ->> 'retention_seconds', d ->> 'tombstone_seconds', d ->> 'min_retention_seconds'),
    row('172800'::text, '3600'::text, '3600'::text), 'how long it is kept'
) from document where name = 'strict';
select is(
    d -> 'fingerprint',
    '{"parts": ["method", "path", "content_type", "body"], "ignore": ["/nonce"], "include": ["/a", "/b"]}'::jsonb,
    'what makes two requests the same'
) from document where name = 'strict';
select is(
    (select jsonb_object_agg(a.key, a.value -> 'status') from jsonb_each(d -> 'answers') as a),
    '{"missing": 400, "invalid": 400, "mismatch": 422, "in_progress": 409, "unresolved": 409, "expired": 410}'::jsonb,
    'which answers to expect'
) from document where name = 'strict';
select is(
    (select string_agg(a, ' ' order by a) from jsonb_object_keys(d -> 'answers') as a),
    'in_progress invalid mismatch unresolved', 'and no others'
) from document where name = 'default';
select is(
    d -> 'answers' -> 'mismatch' ->> 'type', 'https://example.com/idempotency_key_reused', 'where they are described'
) from document where name = 'strict';
select is(d -> 'replay' ->> 'header', 'Idempotency-Replayed', 'how a replay is marked')
from document where name = 'default';
select is(d -> 'replay' ->> 'header', 'X-Replayed', 'by the header of the policy') from document where name = 'stripe';
select is(d -> 'answers' -> 'mismatch' -> 'status', '400'::jsonb, 'in the dialect of its profile')
from document where name = 'stripe';
select is(
    (select string_agg(name || ' ' || (d ->> 'statuses_not_stored'), ', ' order by name)
        from document where name <> 'strict'),
    'default ["401", "403", "408", "425", "429", "5xx"], stripe []', 'what is not final'
);
select throws_ok($$select idem.policy_document('nobody')$$, 'IK006', null, 'of a policy that exists');

select * from finish();
rollback;
