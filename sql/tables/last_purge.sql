create table idem_private.last_purge (
    singleton boolean primary key default true check (singleton),
    started_at timestamptz,
    ended_at timestamptz,
    removed bigint not null default 0,
    caught_up boolean not null default false
) with (fillfactor = 50);

comment on table idem_private.last_purge is 'What purge did last, whoever ran it; one row, for monitoring.';
comment on column idem_private.last_purge.started_at is 'Start of the run: of all batches of one idem.purge_all.';
comment on column idem_private.last_purge.ended_at is 'End of its last batch; null: purge has never run.';
comment on column idem_private.last_purge.removed is 'Keys that the run removed or made tombstones.';
comment on column idem_private.last_purge.caught_up is 'Whether it left nothing behind but what others had locked.';

insert into idem_private.last_purge default values;
