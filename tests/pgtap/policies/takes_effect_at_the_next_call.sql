begin;
select plan(6);

set local idem.single_transaction = on;
insert into idem.policies (name, retry_after) values ('mine', '1 second');
select idem.reserve('shop', 'lapsed', mode => 'leased', policy => 'mine');
select idem.reserve('shop', 'live', mode => 'leased', lease => '1 day', policy => 'mine');
select idem.complete('shop', 'done', token) from idem.reserve('shop', 'done', policy => 'mine');

update idem.policies set retry_after = '7 seconds' where name = 'mine';
select is((idem.reserve('shop', 'live')).retry_after, interval '7 seconds', 'retry_after');
update idem.policies set lease = '5 minutes' where name = 'mine';
select is(
    (select lease_until - created_at from idem.reserve('shop', 'new', mode => 'leased', policy => 'mine')),
    interval '5 minutes', 'lease'
);
update idem.policies set ttl = '2 hours' where name = 'mine';
select is(
    (select expires_at - created_at from idem.reserve('shop', 'newer', policy => 'mine')), interval '2 hours', 'ttl'
);
update idem.policies set key_max_length = 4 where name = 'mine';
select throws_ok($$select idem.reserve('shop', 'newest', policy => 'mine')$$, 'IK001', null, 'key_max_length');

set local idem.clock_offset = '25 hours';
update idem.policies set on_lapse = 'retry' where name = 'mine';
select is((idem.reserve('shop', 'lapsed', mode => 'leased')).outcome, 'started', 'on_lapse');
update idem.policies set tombstone = '1 day' where name = 'mine';
select is((idem.reserve('shop', 'done')).outcome, 'expired', 'tombstone');

select * from finish();
rollback;
