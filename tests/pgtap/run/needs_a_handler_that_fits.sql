begin;
select plan(12);

\ir ../refusal.psql
create table kept (n int);
create function of_text(args text) returns idem.response language sql as 'select null::idem.response';
create function of_json(args json) returns idem.response language sql as 'select null::idem.response';
create function of_two(args jsonb, more int) returns idem.response language sql as 'select null::idem.response';
create function of_two_with_default(args jsonb, more int default 1) returns idem.response language sql as
'select null::idem.response';
create function of_none() returns idem.response language sql as 'select null::idem.response';
create function of_many(variadic args jsonb[]) returns idem.response language sql as 'select null::idem.response';
create function to_jsonb_answer(args jsonb) returns jsonb language sql as 'select args';
create function to_nothing(args jsonb) returns void language sql as 'insert into kept values (1)';
create function to_reservation(args jsonb) returns idem.reservation language sql as 'select null::idem.reservation';
create function to_many(args jsonb) returns setof idem.response language sql as
'values (200, null::jsonb, null::bytea), (201, null, null)';

select is(
    pg_temp.refusal(format($$select idem.run('shop', 'k', null, %L, '{}')$$, handler)), '22023 handler_unfit', handler
)
from unnest(array[
    'of_text(text)', 'of_json(json)', 'of_two(jsonb, int)', 'of_two_with_default(jsonb, int)', 'of_none()',
    'of_many(jsonb[])'
]) as handler;
select throws_ok(format($$select idem.run('shop', 'k', null, %L, '{}')$$, handler), '42846', null, handler)
from unnest(array['to_jsonb_answer(jsonb)', 'to_nothing(jsonb)', 'to_reservation(jsonb)']) as handler;
select throws_ok($$select idem.run('shop', 'k', null, 'to_many(jsonb)', '{}')$$, 'P0003', null, 'more than one answer');
select is(
    pg_temp.refusal($$select idem.run('shop', 'k', null, null, '{}')$$), '22023 handler_unfit', 'none at all'
);
select is_empty('table kept', 'none of them has run');

select * from finish();
rollback;
