begin;
select plan(5);

create temp table bad (mode) as values (''), ('Leased'), ('ATOMIC'), (' atomic'), ('saga');

select throws_ok(format('select idem.reserve(''shop'', ''k'', mode => %L)', mode), '22023', null, mode) from bad;

select * from finish();
rollback;
