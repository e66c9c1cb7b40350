begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, lease) values ('slow', '10 minutes');

select is(
    (select lease_until - created_at from idem.reserve('shop', 'a', mode => 'leased')),
    interval '60 seconds', 'the lease of the default policy'
);
select is(
    (select lease_until - created_at from idem.reserve('shop', 'b', mode => 'leased', policy => 'slow')),
    interval '10 minutes', 'the lease of another policy'
);
select is(
    (select lease_until - created_at from idem.reserve('shop', 'c', mode => 'leased', lease => '90 seconds')),
    interval '90 seconds', 'the lease that the caller asks for'
);
select is(
    (select expires_at - created_at from idem.reserve('shop', 'd', mode => 'leased')),
    interval '24 hours', 'the lease does not change the retention'
);

select * from finish();
rollback;
