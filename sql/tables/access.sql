-- Roles are kept as oids, so that they may be renamed; a dump writes their names.
create table idem_private.access (
    role regrole not null,
    given text collate "C" not null,
    primary key (role, given)
);

comment on table idem_private.access is
'Which role holds which grant (client, resolver, monitor, operator); an upgrade gives it what was added.';
