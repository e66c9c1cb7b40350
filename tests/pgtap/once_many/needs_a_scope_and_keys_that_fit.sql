-- A single unfit key and nothing of the batch is stored.
begin;
select plan(13);

\ir ../refusal.psql
insert into idem.policies (name, key_min_length, key_pattern) values ('strict', 3, '^[a-z]+$');
create function pg_temp.refused(scope text, keys text[], policy text) returns text language sql as
$$select pg_temp.refusal(format('select idem.once_many(%L, %L, %L)', scope, keys, policy))$$;

select is(pg_temp.refused(null, '{a}', 'messages'), 'IK001 null', 'no scope');
select is(pg_temp.refused('', '{a}', 'messages'), 'IK001 empty', 'an empty scope');
select is(pg_temp.refused('', '{}', 'messages'), 'IK001 empty', 'even for no key');
select is(pg_temp.refused(' ', null, 'messages'), 'IK001 blank', 'or null');
select is(pg_temp.refused('billing', '{a,NULL,b}', 'messages'), 'IK001 null', 'a null among them');
select is(pg_temp.refused('billing', '{a,"",b}', 'messages'), 'IK001 empty', 'an empty one');
select is(pg_temp.refused('billing', '{a," ",b}', 'messages'), 'IK001 blank', 'a blank one');
select is(
    pg_temp.refused('billing', array['a', E'b\n'], 'messages'), 'IK001 not_printable', 'a control character'
);
select is(
    pg_temp.refused('billing', array['a', repeat('b', 256)], 'messages'), 'IK001 too_long 255', 'too long a one'
);
select is(pg_temp.refused('billing', '{abc,ab}', 'strict'), 'IK001 too_short 3', 'by its policy');
select is(pg_temp.refused('billing', '{abc,ABC}', 'strict'), 'IK001 pattern', 'by its policy');
select is_empty('table idem_private.reservation', 'nothing is stored');
select set_eq(
    $$select outcome from idem.once_many(U&'caf\00e9 \4f60', '{abc}', 'strict')$$, array['first'],
    'a scope may have any characters'
);

select * from finish();
rollback;
