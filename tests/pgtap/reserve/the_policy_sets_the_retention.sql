begin;
select plan(2);

insert into idem.policies (name, ttl) values ('short', '2 hours');

select is(
    (select expires_at - created_at from idem.reserve('shop', 'a', policy => 'short')), interval '2 hours'
);
select is(
    (select expires_at - created_at from idem.reserve('shop', 'b', policy => 'messages')), interval '336 hours',
    'messages are kept for 14 days'
);

select * from finish();
rollback;
