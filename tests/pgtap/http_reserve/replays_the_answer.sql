begin;
select plan(9);

insert into idem.policies (name, replay_header) values ('named', 'X-Replay');
insert into idem.policies (name, profile) values ('stripe', 'stripe');
create function pg_temp.completed(
    key text, status int, headers jsonb, body bytea, policy text = 'default'
) returns idem.http_reservation language plpgsql as $$
declare
    held idem.http_reservation := idem.http_reserve('shop', key, 'POST', '/', policy => policy);
begin
    perform idem.complete('shop', key, held.token, status, headers, body);
    return idem.http_reserve('shop', key, 'POST', '/', policy => policy);
end
$$;

select is(
    (select row(outcome, key, status, body, token) from pg_temp.completed('a', 201, '[]', '\x00ff')),
    row('replay'::text, 'a'::text, 201, '\x00ff'::bytea, null::uuid),
    'status and bytes'
);
select is(
    (select headers from pg_temp.completed('b', 201, '[["B", "2"], ["a", "1"], ["B", "1"]]', '')),
    '[["B", "2"], ["a", "1"], ["B", "1"], ["Idempotency-Replayed", "true"]]'::jsonb,
    'headers in order, and the mark'
);
select is((select body from pg_temp.completed('c', 200, null, '')), ''::bytea, 'an empty body');
select is((select body from pg_temp.completed('d', 200, null, null)), null::bytea, 'is not the same as none');
select is(
    (select headers from pg_temp.completed('e', 200, null, null)), '[["Idempotency-Replayed", "true"]]'::jsonb,
    'the mark alone'
);
select is(
    (select status from pg_temp.completed('f', null, null, 'x')), 200,
    'a status is always there, since null means: work'
);
select is((select status from pg_temp.completed('g', null, null, null)), 204, 'also without a body');
select is(
    (select headers from pg_temp.completed('h', 200, '[]', null, 'named')), '[["X-Replay", "true"]]'::jsonb,
    'the policy names the mark'
);
select is(
    (select headers from pg_temp.completed('i', 200, '[]', null, 'stripe')), '[["Idempotent-Replayed", "true"]]'::jsonb,
    'Stripe has another one'
);

select * from finish();
rollback;
