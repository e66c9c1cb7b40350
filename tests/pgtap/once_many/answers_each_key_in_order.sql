begin;
select plan(4);

select results_eq(
    $$select ordinal, key, outcome from idem.once_many('billing', array['c', 'a', 'b'])$$,
    $$values (1, 'c', 'first'), (2, 'a', 'first'), (3, 'b', 'first')$$
);
select results_eq(
    $$select ordinal, key, outcome from idem.once_many('billing', array['d', 'c', 'B', 'b'])$$,
    $$values (1, 'd', 'first'), (2, 'c', 'duplicate'), (3, 'B', 'first'), (4, 'b', 'duplicate')$$
);
select is(idem.once('billing', 'a'), 'duplicate', 'once knows them');
select lives_ok('set constraints all immediate', 'it commits as it is');

select * from finish();
rollback;
