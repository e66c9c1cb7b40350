begin;
select plan(2);
\ir ../check.psql

select is(
    pg_temp.health('version'),
    format('true: pyidem %s, revision %s', idem.version(), (select version_num from idem_private.alembic_version))
);
delete from idem_private.alembic_version;
select is(pg_temp.health('version'), format('false: pyidem %s, revision unknown', idem.version()));

select * from finish();
rollback;
