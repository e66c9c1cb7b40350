begin;
select plan(3);

set local idem.single_transaction = on;
select idem.reserve('billing', 'busy', mode => 'leased');
select idem.once('billing', 'done');
select idem.once('billing', 'old', 'default');

select results_eq(
    $$select ordinal, key, outcome from idem.once_many('billing', '{b,a,b,a,b,A}')$$,
    $$values
        (1, 'b', 'first'), (2, 'a', 'first'), (3, 'b', 'duplicate'), (4, 'a', 'duplicate'), (5, 'b', 'duplicate'),
        (6, 'A', 'first')$$,
    'the first of them is first'
);
select results_eq(
    $$select ordinal, key, outcome from idem.once_many('billing', '{busy,done,busy,done}')$$,
    $$values (1, 'busy', 'in_progress'), (2, 'done', 'duplicate'), (3, 'busy', 'in_progress'), (4, 'done', 'duplicate')$$,
    'unless it is none'
);
set local idem.clock_offset = '25 hours';
select results_eq(
    $$select ordinal, key, outcome from idem.once_many('billing', '{old,old}')$$,
    $$values (1, 'old', 'first'), (2, 'old', 'duplicate')$$, 'an expired one, too'
);

select * from finish();
rollback;
