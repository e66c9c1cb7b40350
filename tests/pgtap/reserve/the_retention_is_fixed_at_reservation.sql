begin;
select plan(1);

insert into idem.policies (name, ttl) values ('changing', '10 hours');
create temp table first as select * from idem.reserve('shop', 'k', policy => 'changing');
select idem.complete('shop', 'k', token, 200) from first;
update idem.policies set ttl = '2 hours' where name = 'changing';

set local idem.clock_offset = '9 hours';
select results_eq(
    $$select outcome, expires_at from idem.reserve('shop', 'k')$$, $$select 'replay', expires_at from first$$
);

select * from finish();
rollback;
