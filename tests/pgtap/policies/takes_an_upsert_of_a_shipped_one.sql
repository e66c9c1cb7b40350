begin;
select plan(1);

insert into idem.policies (name, ttl) values ('default', '2 hours') on conflict (name) do update set ttl = excluded.ttl;

select is((select expires_at - created_at from idem.reserve('shop', 'k')), interval '2 hours');

select * from finish();
rollback;
