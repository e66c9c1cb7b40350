begin;
select plan(7);

insert into idem.policies (name, ttl, min_retention) values ('short', '2 hours', '1 hour'), ('late', '2 hours', '5 hours');
create function pay(args jsonb) returns idem.response language sql as 'select row(201, null, null)::idem.response';
create temp table answer as
select 'a' as key, a.* from idem.run('shop', 'a', null, 'pay(jsonb)', '{}') as a union all
select 'b', a.* from idem.run('shop', 'b', null, 'pay(jsonb)', '{}', 'short') as a union all
select 'c', a.* from idem.run('shop', 'c', null, 'pay(jsonb)', '{}', 'late') as a union all
select 'd', a.* from idem.run('shop', 'd', null, 'pay(jsonb)', '{}', null) as a;

select is((select expires_at - created_at from answer where key = 'a'), interval '24 hours', 'by default a day');
select is((select expires_at - created_at from answer where key = 'd'), interval '24 hours', 'null is the default');
select is((select expires_at - created_at from answer where key = 'b'), interval '2 hours', 'ttl');
select is((select expires_at - completed_at from answer where key = 'c'), interval '5 hours', 'min_retention');
select results_eq(
    $$select a.key, l.created_at, l.completed_at, l.expires_at
      from answer as a cross join lateral idem.lookup('shop', a.key) as l$$,
    'select key, created_at, completed_at, expires_at from answer', 'as lookup says'
);
set local idem.clock_offset = '2 hours';
select is((idem.run('shop', 'b', null, 'pay(jsonb)', '{}', 'short')).outcome, 'started', 'then it runs again');
select is((idem.run('shop', 'c', null, 'pay(jsonb)', '{}', 'late')).outcome, 'replay');

select * from finish();
rollback;
