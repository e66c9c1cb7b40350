begin;
select plan(1);

create temp table names (scope, key, step) as values
    ('a', 'b', 'c'), ('a', 'b', ''), ('a', 'c', 'b'), ('b', 'a', 'c'), ('ab', 'c', ''), ('a', 'bc', ''),
    ('a', 'b', 'C'), ('A', 'b', 'c'), ('a', 'B', 'c'), ('abc', 'd', 'e'), ('ab', 'cd', 'e'), ('a', 'bcd', 'e'),
    ('a', 'bc', 'de'),
    ('a:b', 'c', 'd'), ('a', 'b:c', 'd'), ('a', 'b', 'c:d'), ('1:a', '1:b', 'c'), ('1', ':a1:b', 'c'),
    ('a1', ':b', 'c'), ('a', '1:b', 'c'), ('a', 'b1:', 'c'), ('a/b', 'c', 'd'), ('a', 'b/c', 'd'),
    (U&'\00e9', 'k', ''), (U&'e\0301', 'k', ''), ('e', 'k', '');

select is(
    (select count(distinct idem.downstream_key(scope, key, step)) from names), (select count(*) from names)
);

select * from finish();
rollback;
