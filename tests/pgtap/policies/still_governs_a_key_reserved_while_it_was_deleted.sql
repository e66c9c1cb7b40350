-- A reservation does not lock its policy, so that it may commit just after the deletion has.
begin;
select plan(3);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, ttl, tombstone) values ('mine', 'retry', '1 hour 1 second', '10 hours');
select idem.reserve('shop', 'lapsed', mode => 'leased', policy => 'mine');
select idem.complete('shop', 'done', token) from idem.reserve('shop', 'done', policy => 'mine');
create temp table meanwhile as table idem_private.reservation;
delete from idem_private.reservation;
delete from idem.policies where name = 'mine';
insert into idem_private.reservation table meanwhile;

set local idem.clock_offset = '2 hours';
select is((idem.reserve('shop', 'lapsed', mode => 'leased')).outcome, 'started', 'a lapse is taken over');
select is((idem.reserve('shop', 'done')).outcome, 'expired', 'a finished key leaves a tombstone');
select is((select count(*) from idem.keys where policy = 'mine'), 2::bigint, 'operators see both');

select * from finish();
rollback;
