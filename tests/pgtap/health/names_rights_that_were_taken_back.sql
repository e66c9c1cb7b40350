begin;
select plan(7);
\ir ../check.psql

create role "idem Clerk";
select idem.grant_client('idem Clerk'), idem.grant_operator('idem Clerk');
select is(pg_temp.health('grants'), 'true: every role has what it was granted');
revoke execute on function idem.purge from "idem Clerk";
select is(pg_temp.health('grants'), 'false: revoked since it was granted: idem.purge of "idem Clerk"');
select is(pg_temp.fix('grants'), 'select idem.grant_operator(''idem Clerk'');');
select pg_temp.carry_out_fix('grants');
select matches(pg_temp.health('grants'), '^true: ');

revoke update on idem.policies from "idem Clerk";
select is(pg_temp.health('grants'), 'false: revoked since it was granted: idem.policies of "idem Clerk"');
revoke usage on schema idem from "idem Clerk";
select matches(pg_temp.health('grants'), 'schema idem of "idem Clerk"');
select idem.revoke_access('idem Clerk');
select matches(pg_temp.health('grants'), '^true: ', 'a role that is meant to have nothing');

select * from finish();
rollback;
