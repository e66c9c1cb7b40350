begin;
select plan(1);

insert into idem.policies (name, ttl, min_retention) values ('usual', '10 hours', '1 hour');
create temp table first as select * from idem.reserve('shop', 'k', policy => 'usual');
select idem.complete('shop', 'k', token, 200) from first;

set local idem.clock_offset = '9 hours';
select results_eq(
    $$select outcome, expires_at from idem.reserve('shop', 'k')$$, $$select 'replay', expires_at from first$$
);

select * from finish();
rollback;
