begin;
select plan(1);

insert into idem.policies (name, ttl, min_retention) values ('late', '2 minutes', '1 hour');
select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k', policy => 'late');

select is((select expires_at from idem.keys), (select expires_at from idem.lookup('shop', 'k')));

select * from finish();
rollback;
