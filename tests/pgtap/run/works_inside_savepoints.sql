begin;
select plan(3);

create function pay(args jsonb) returns idem.response language sql as 'select row(201, null, null)::idem.response';

savepoint before;
select idem.run('shop', 'k', '\x01', 'pay(jsonb)', '{}');
rollback to savepoint before;
select is((idem.run('shop', 'k', '\x02', 'pay(jsonb)', '{}')).outcome, 'started', 'rolled back, the key is free');
select is((idem.run('shop', 'k', '\x02', 'pay(jsonb)', '{}')).outcome, 'replay', 'once more, it is replayed');
select lives_ok('set constraints all immediate', 'it commits');

select * from finish();
rollback;
