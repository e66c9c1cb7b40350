-- Bound to the database's oid: a dump of a test database restored elsewhere, or a clone, does not inherit it.
create table idem_private.testing (
    database oid primary key,
    enabled_at timestamptz not null default clock_timestamp(),
    enabled_by name not null
);

comment on table idem_private.testing is
'Databases in which the settings idem.clock_offset and idem.single_transaction are honoured.';
