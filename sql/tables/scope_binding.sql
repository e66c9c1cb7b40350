-- As long as it is empty every role may name any scope. Roles are kept
-- as oids, so that a binding outlives the renaming of its role; a dump writes their names.
create table idem_private.scope_binding (
    role regrole not null,
    prefix text collate "C" not null,
    primary key (role, prefix)
);

comment on table idem_private.scope_binding is 'Which scopes a role may name; one that has none here may name any.';
comment on column idem_private.scope_binding.prefix is 'As idem_private.is_within understands it.';
