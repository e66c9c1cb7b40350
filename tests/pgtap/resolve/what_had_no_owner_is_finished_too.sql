-- A mark, and what run has stored, have no token.
begin;
select plan(2);

\ir ../refusal.psql
create function pay(args jsonb) returns idem.response language sql as 'select row(201, null, null)::idem.response';
select idem.once('shop', 'marked');
select idem.run('shop', 'paid', null, 'pay(jsonb)', '{}');

select is(
    pg_temp.refusal(format($$select idem.resolve('shop', %L, 'retry', 'asked', force => true)$$, key)),
    'IK004 finished', key
)
from unnest(array['marked', 'paid']) as key;

select * from finish();
rollback;
