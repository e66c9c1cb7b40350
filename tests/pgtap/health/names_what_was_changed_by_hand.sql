begin;
select plan(7);
\ir ../check.psql

select is(pg_temp.health('drift'), 'true: every object is as the revision made it');
create index mine on idem_private.policy (ttl);
select matches(pg_temp.fix('drift'), '^select \* from idem_private\.drift\(\);', 'what is no function and no view');
drop index idem_private.mine;
create or replace function idem.version() returns text language sql as 'select ''0''::text';
select matches(pg_temp.health('drift'), '^false: 1 not as the revision made them: function idem\.version\(\) changed$');
select is(
    pg_temp.fix('drift'),
    'psql -X -q -f sql/*/version.sql  # in a checkout of this version; what differs: select * from idem_private.drift()'
);
create table idem_private.mine ();
drop function idem.json_response;
select matches(pg_temp.health('drift'), 'idem\.json_response.* missing', 'what is missing');
select matches(pg_temp.health('drift'), 'idem_private\.mine extra', 'what is extra');
select matches(pg_temp.fix('drift'), '^psql -X -q -f sql/\*/json_response\.sql -f sql/\*/version\.sql  #');

select * from finish();
rollback;
