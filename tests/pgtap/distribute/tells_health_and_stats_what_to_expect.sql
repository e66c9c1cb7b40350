begin;
select plan(7);
\ir ../check.psql
\ir ../citus.psql

select idem.distribute();
set local idem.single_transaction = on;
select idem.reserve('shop', 'held', mode => 'leased');
select is(
    pg_temp.health('check_at_commit'),
    'unknown: Citus runs no triggers: an atomic reservation committed unfinished is unresolved'
);
select is(pg_temp.health('drift'), 'true: every object is as the revision made it');
select is(pg_temp.health('primary_key'), 'true: decides every race');
set local idem.clock_offset = '2 minutes';
select alike(pg_temp.health('lapsed'), 'true: 1 with an unknown outcome%');
select is((select keys from idem.stats() where state = 'lapsed'), 1::bigint, 'unfinished keys are counted');
select is((select claims from idem.claim_lapsed()), 1, 'and claimed');
set local idem.clock_offset = '20 minutes';
select alike(pg_temp.health('lapsed'), 'false: 1 with an unknown outcome%');

select * from finish();
rollback;
