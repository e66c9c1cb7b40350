begin;
select plan(3);

create temp table statements (what, statement) as values
    ('insert', $$insert into idem.keys (scope, key) values ('shop', 'k')$$),
    ('update', $$update idem.keys set outcome = 'completed'$$),
    ('delete', $$delete from idem.keys$$);

select throws_ok(statement, '55000', null, what) from statements;

select * from finish();
rollback;
