begin;
select plan(6);

\ir ../refusal.psql
create function strict_one(args jsonb) returns idem.response strict language sql as $$
    select row(201, null, null)::idem.response
$$;
create function lax_one(args jsonb) returns idem.response language sql as $$
    select row(case when args is null then 204 else 201 end, null, null)::idem.response
$$;

select is(
    pg_temp.refusal($$select idem.run('shop', 'k', null, 'strict_one(jsonb)', null)$$), '22023 args_missing',
    'it would not be called'
);
select is((idem.lookup('shop', 'k')).outcome, 'absent', 'and nothing is stored');
select is((idem.run('shop', 'k', null, 'strict_one(jsonb)', '{}')).status, 201, 'with arguments it is called');
select is((idem.run('shop', 'k', null, 'strict_one(jsonb)', null)).outcome, 'replay', 'an answer needs no call');
select is((idem.run('shop', 'null', null, 'strict_one(jsonb)', 'null')).status, 201, 'a JSON null is an argument');
select is((idem.run('shop', 'lax', null, 'lax_one(jsonb)', null)).status, 204, 'others are called without');

select * from finish();
rollback;
