begin;
select plan(9);

\ir ../refusal.psql
create temp table effect (args jsonb);
create function pay(args jsonb) returns idem.response language plpgsql as
$$begin insert into effect values (args); return row(201, null, null)::idem.response; end$$;
create function pg_temp.refused(scope text, key text, policy text) returns text language sql as
$$select pg_temp.refusal(format('select idem.run(%L, %L, null, ''pay(jsonb)'', ''{}'', %L)', scope, key, policy))$$;

select is(pg_temp.refused(null, 'k', 'default'), 'IK001 null', 'no scope');
select is(pg_temp.refused('shop', null, 'default'), 'IK001 null', 'no key');
select is(pg_temp.refused('', 'k', 'default'), 'IK001 empty', 'an empty scope');
select is(pg_temp.refused('shop', ' ', 'default'), 'IK001 blank', 'a blank key');
select is(pg_temp.refused('shop', '"k"', 'default'), 'IK001 quoted', 'a raw header');
select is(pg_temp.refused('shop', repeat('k', 256), 'default'), 'IK001 too_long 255', 'too long a key');
select is(pg_temp.refused('shop', 'k', 'none'), 'IK006 no_such_policy', 'an unknown policy');
select is_empty('table effect', 'no handler has run');
select is_empty('table idem_private.reservation', 'nothing is stored');

select * from finish();
rollback;
