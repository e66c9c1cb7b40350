begin;
select plan(6);

select idem.once('billing', 'a');
select count(*) from idem.once_many('billing', '{b,c,d}');

select is(idem.once_undo('billing', '{a,c}'), 2, 'it says how many');
select results_eq('select key from idem.keys order by key', $$values ('b' collate "C"), ('d')$$, 'others stay');
select is(idem.once_undo('billing', '{a,c}'), 0, 'repeated, none');
select is(idem.once('billing', 'a'), 'first', 'once again, it is first');
select results_eq(
    $$select key, outcome from idem.once_many('billing', '{a,b,c,d}')$$,
    $$values ('a', 'duplicate'), ('b', 'duplicate'), ('c', 'first'), ('d', 'duplicate')$$
);
select is(idem.once_undo('billing', '{a,a,b,c,d,e}'), 4, 'repeats and strangers do not count');

select * from finish();
rollback;
