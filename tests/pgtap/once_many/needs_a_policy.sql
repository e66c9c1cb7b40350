begin;
select plan(4);

\ir ../refusal.psql
select is(
    pg_temp.refusal($$select idem.once_many('billing', '{a}', 'none')$$), 'IK006 no_such_policy', 'of this name'
);
select is(
    pg_temp.refusal($$select idem.once_many('billing', '{}', 'none')$$), 'IK006 no_such_policy', 'even for no key'
);
select is((select outcome from idem.once_many('billing', '{a}', null)), 'first', 'null is messages');
select is((select policy from idem.keys), 'messages');

select * from finish();
rollback;
