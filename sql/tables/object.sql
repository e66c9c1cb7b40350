-- Rewritten at the end of every installation and migration by idem_private.record_objects, so that whoever runs either
-- needs nothing but SQL to find out later what was changed by hand.
create table idem_private.object (
    kind text collate "C" not null,
    name text collate "C" not null,
    part_of text collate "C",
    definition jsonb not null,
    primary key (kind, name)
);

comment on table idem_private.object is 'What the installed revision put into both schemas; idem_private.drift compares.';
comment on column idem_private.object.name is 'As pg_identify_object names it, but for the types of a function''s arguments; kind is its type.';
comment on column idem_private.object.part_of is 'The table, view or type that a column, index, constraint or trigger is of.';
comment on column idem_private.object.definition is 'What decides how it works; long text as its MD5.';
