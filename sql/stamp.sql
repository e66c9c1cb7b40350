-- The version table exactly as Alembic makes it, at the head revision: after a plain installation `pyidem upgrade` has
-- nothing to do. It may exist already, empty, left by a downgrade to base.
create table if not exists idem_private.alembic_version (
    version_num varchar(32) not null,
    constraint alembic_version_pkc primary key (version_num)
);

insert into idem_private.alembic_version (version_num) values ('idem_0001');

do $$ begin perform idem_private.record_objects(); end $$;
