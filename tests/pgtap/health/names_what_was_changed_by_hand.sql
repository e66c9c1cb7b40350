begin;
select plan(5);
\ir ../check.psql

select is(pg_temp.health('drift'), 'true: every object is as the revision made it');
create or replace function idem.version() returns text language sql as 'select ''0''::text';
select matches(pg_temp.health('drift'), '^false: 1 not as the revision made them: function idem\.version\(\) changed$');
create table idem_private.mine ();
drop function idem.json_response;
select matches(pg_temp.health('drift'), 'idem\.json_response.* missing', 'what is missing');
select matches(pg_temp.health('drift'), 'idem_private\.mine extra', 'what is extra');
select matches(pg_temp.fix('drift'), '^select \* from idem_private\.drift\(\);');

select * from finish();
rollback;
