begin;
select plan(6);

create temp table bad (fields) as values ('null'), ('[]'), ('"a"'), ('1'), ('true'), ('[{"a": 1}]');

select throws_ok(format('select idem.reserve(''shop'', ''k'', fields => %L)', fields), '22023', null, fields) from bad;

select * from finish();
rollback;
