begin;
select plan(9);

insert into idem.policies (name, max_body_bytes) values ('small', 3), ('none', 0);
create function pg_temp.replayed(key text, body bytea, policy text) returns idem.http_reservation language plpgsql as $$
declare
    held idem.http_reservation := idem.http_reserve('shop', key, 'POST', '/', policy => policy);
begin
    perform idem.http_complete('shop', key, held.token, 201, '[["A", "b"]]', body);
    return idem.http_reserve('shop', key, 'POST', '/', policy => policy);
end
$$;
create temp table answer as
select replayed.*
from (values ('fits', 'abc'::bytea, 'small'), ('over', 'abcd', 'small'), ('any', 'a', 'none'), ('empty', '', 'none'))
    as call (key_, body_, policy_)
cross join lateral pg_temp.replayed(key_, body_, policy_) as replayed;

select is(body, 'abc'::bytea, 'at the limit it is stored') from answer where key = 'fits';
select is(headers, '[["A", "b"], ["Idempotency-Replayed", "true"]]'::jsonb, 'and not marked')
from answer where key = 'fits';
select is(body, null, 'over the limit there is none') from answer where key = 'over';
select is(status, 201, 'but the status') from answer where key = 'over';
select is(
    headers,
    '[["A", "b"], ["Idempotency-Body-Omitted", "true"], ["Idempotency-Replayed", "true"]]'::jsonb,
    'the headers, and a mark'
) from answer where key = 'over';
select is(body, null, 'a limit of zero stores none') from answer where key = 'any';
select is(body, ''::bytea, 'an empty body is not over it') from answer where key = 'empty';
select is(headers, '[["A", "b"], ["Idempotency-Replayed", "true"]]'::jsonb, 'and has no mark')
from answer where key = 'empty';
select is(
    (idem.lookup('shop', 'over')).headers, '[["A", "b"], ["Idempotency-Body-Omitted", "true"]]'::jsonb,
    'the mark is stored, so that every reader sees it'
);

select * from finish();
rollback;
