begin;
select plan(8);

insert into idem.policies (name, drop_headers) values ('own', '{X-Secret}');
insert into idem.policies (name, profile) values ('stripe', 'stripe');
create function pg_temp.stored(headers jsonb, policy text = 'default', body bytea = 'x') returns jsonb language plpgsql as $$
declare
    held idem.http_reservation := idem.http_reserve(
        'shop', md5(coalesce(headers::text, 'none')), 'POST', '/', policy => policy
    );
begin
    perform idem.http_complete('shop', held.key, held.token, 200, headers, body);
    return (idem.lookup('shop', held.key)).headers;
end
$$;

select is(
    pg_temp.stored(
        '[["Location", "/1"], ["Set-Cookie", "a=b"], ["ETag", "x"], ["DATE", "today"], ["x-request-id", "7"],
            ["Content-Length", "2"], ["Link", "</a>"], ["Connection", "close"], ["link", "</b>"],
            ["WWW-Authenticate", "Basic"], ["RateLimit-Remaining", "3"], ["Transfer-Encoding", "chunked"]]'
    ),
    '[["Location", "/1"], ["ETag", "x"], ["Link", "</a>"], ["link", "</b>"]]'::jsonb,
    'what belongs to the operation, in order'
);
select is(
    pg_temp.stored('[["connection", "keep-alive, X-Hop ,x-other"], ["x-hop", "1"], ["X-Other", "2"], ["X-Own", "3"]]'),
    '[["X-Own", "3"]]'::jsonb,
    'not what a Connection header names'
);
select is(
    pg_temp.stored('[["Idempotency-Replayed", "true"], ["idempotency-body-omitted", "true"], ["A", "b"]]'),
    '[["A", "b"]]'::jsonb,
    'not the marks of a replay, which an answer passed on may have'
);
select is(pg_temp.stored('[["idempotent-replayed", "true"]]', 'stripe'), '[]'::jsonb, 'whatever their names');
select is(
    pg_temp.stored('[["x-SECRET", "1"], ["Set-Cookie", "a=b"]]', 'own'), '[["Set-Cookie", "a=b"]]'::jsonb,
    'the policy decides'
);
select is(pg_temp.stored('[]'), '[]'::jsonb, 'no headers');
select is(pg_temp.stored(null), null::jsonb, 'none at all');
select is(
    pg_temp.stored('[["idempotency-body-omitted", "1"], ["A", "c"]]', body => null),
    '[["A", "c"], ["Idempotency-Body-Omitted", "true"]]'::jsonb,
    'but an answer whose body the caller could not keep is marked'
);

select * from finish();
rollback;
