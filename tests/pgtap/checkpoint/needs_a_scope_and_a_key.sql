begin;
select plan(4);

\ir ../refusal.psql
create function pg_temp.refused(scope text, key text) returns text language sql as
$$select pg_temp.refusal(format('select idem.checkpoint(%L, %L, gen_random_uuid(), ''charged'')', scope, key))$$;

select is(pg_temp.refused(null, 'k'), 'IK001 null', 'no scope');
select is(pg_temp.refused('shop', null), 'IK001 null', 'no key');
select is(pg_temp.refused('', 'k'), 'IK001 empty', 'an empty scope');
select is(pg_temp.refused('shop', ' '), 'IK001 blank', 'a blank key');

select * from finish();
rollback;
