begin;
select plan(4);

select idem.once('mail', 'a', 'default');
select idem.complete('mail', 'b', token, 201) from idem.reserve('mail', 'b');
create temp table before as table idem_private.reservation;

set local idem.clock_offset = '25 hours';
select results_eq(
    $$select key, outcome from idem.once_many('billing', '{a,b}')$$, $$values ('a', 'first'), ('b', 'first')$$
);
select results_eq(
    $$select key, outcome from idem.once_many('Mail', '{a,b}')$$, $$values ('a', 'first'), ('b', 'first')$$,
    'case counts'
);
select is(idem.once_undo('billing', '{a,b}'), 2);
select set_eq($$select * from idem_private.reservation where scope = 'mail'$$, 'table before', 'the other is as it was');

select * from finish();
rollback;
