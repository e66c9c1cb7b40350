begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, ttl, min_retention, tombstone) values ('late', '2 hours', '90 minutes', '1 day');
create temp table first as select * from idem.reserve('shop', 'k', mode => 'leased', policy => 'late');

set local idem.clock_offset = '100 minutes';
select idem.complete('shop', 'k', token, 200) from first;

set local idem.clock_offset = '189 minutes';
create temp table answer as select * from idem.reserve('shop', 'k');
select is((select outcome from answer), 'replay', 'after its ttl, but not long after its completion');
select is(
    (select expires_at - completed_at from answer), interval '90 minutes', 'the answer says until when'
);
set local idem.clock_offset = '191 minutes';
select is((idem.reserve('shop', 'k')).outcome, 'expired', 'then it expires');
select is(
    (select expires_at from idem.reserve('shop', 'k')), (select expires_at from answer), 'when it has said'
);
update idem.policies set min_retention = '3 hours' where name = 'late';
select is((idem.reserve('shop', 'k')).outcome, 'replay', 'min_retention is that of the present policy');

select * from finish();
rollback;
