begin;
\ir ../refusal.psql
select plan(3);

create role idem_application;
create role idem_dba;
grant usage on schema idem to idem_dba;
grant execute on function idem.version() to idem_dba with grant option;
set local role idem_dba;
grant execute on function idem.version() to idem_application;
reset role;

select is(pg_temp.refusal($$select idem.revoke_access('idem_application')$$), '2BP01 granted_by_another');
select lives_ok($$select idem.revoke_access('idem_dba')$$, 'the other one can be revoked');
select is(
    has_function_privilege('idem_application', 'idem.version()', 'execute'), false, 'and takes with it what it granted'
);

select * from finish();
rollback;
