-- I10
begin;
select plan(2);

insert into idem.policies (name, key_pattern) values ('any', '.');
create temp table names (scope, key) as values
    ('a', 'bc'), ('ab', 'c'), ('a', 'Bc'), ('A', 'bc'), ('a', 'bc '), ('a', ' bc'), ('a ', 'bc'), ('a', 'b/c'),
    ('a/b', 'c'), ('a:b', 'c'), ('a', 'b:c'), ('1:a', 'bc'), ('1', ':abc'), ('a', 'b%'), ('a', '%'), ('a', '_c'),
    (U&'\00e9', 'c'), (U&'e\0301', 'c'), ('e', 'c'), (U&'\00df', 'c'), ('ss', 'c'), ('bc', 'a'),
    ('a', 'key-49566'), ('a', 'key-84659'), ('k', U&'\00e9'), ('k', U&'e\0301');

select set_eq(
    $$select (idem.reserve(scope, key, policy => 'any')).outcome from names$$, array['started'], 'each is a new one'
);
select is(
    (select count(distinct idem.downstream_key(scope, key)) from names), (select count(*) from names),
    'each has a downstream key of its own'
);

select * from finish();
rollback;
