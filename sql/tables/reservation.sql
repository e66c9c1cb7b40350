-- One row per (scope, key). The primary key is the arbiter of every race; locks only spare the wait.
--
-- Completion writes none of the indexed columns, so that it stays a HOT update, and the columns that it does write
-- come last, so that its WAL record holds little else. Every row is deleted one day, so it is vacuumed more often than
-- other tables, and its size stays what the live keys need: see tests/bench/steady.py.
create table idem_private.reservation (
    scope text collate "C" not null,
    key text collate "C" not null,
    fingerprint bytea,
    fields jsonb,
    policy text collate "C" not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    expired_at timestamptz,
    purge_at timestamptz,
    owned_at timestamptz,
    owner_xid xid8,
    token uuid,
    attempt int not null,
    leased boolean not null,
    must_complete boolean not null default false,
    put_off boolean not null default false,
    lease interval,
    lease_until timestamptz,
    recovery_point text,
    state jsonb,
    released_at timestamptz,
    completed_at timestamptz,
    status int,
    headers jsonb,
    body bytea,
    primary key (scope, key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- The order in which purge looks at rows. What purge has put off it does not meet again before purge_at.
create index reservation_expiry on idem_private.reservation ((coalesce(purge_at, expires_at)));

comment on table idem_private.reservation is 'Every key in its life: reserved, released, completed, expired.';
comment on column idem_private.reservation.fingerprint is 'Digest of the request; never rewritten while the row lives.';
comment on column idem_private.reservation.fields is 'Short hashes of the parts of the request, to name what differs.';
comment on column idem_private.reservation.policy is 'Policy of this life of the key; settings are read at each call.';
comment on column idem_private.reservation.created_at is 'When this life of the key began.';
comment on column idem_private.reservation.expires_at is
'created_at plus ttl. The real expiry of a finished row is the later of this and completed_at plus min_retention. -infinity in a tombstone.';
comment on column idem_private.reservation.expired_at is
'Set where purge has left a tombstone: the real expiry of what it cleared. The tombstone is counted from then.';
comment on column idem_private.reservation.purge_at is
'Purge leaves the row alone until then; null: until expires_at. It decides nothing else.';
comment on column idem_private.reservation.owned_at is
'When the present owner took the row, by the real clock; null in a row of idem.run, which never had an owner. A transaction id may come again in a restored database; together with a time that is not before the start of the transaction it means this very transaction.';
comment on column idem_private.reservation.owner_xid is
'Transaction that took the row by reserve or takeover; null where a claim took it.';
comment on column idem_private.reservation.token is 'Proof of ownership; every later call is compare-and-set on it. Null in a row that was stored finished: by idem.run, idem.once and idem.once_many.';
comment on column idem_private.reservation.leased is 'Mode: false is atomic.';
comment on column idem_private.reservation.must_complete is
'Atomic and not stored finished: the check at commit looks at this row. One column, since the condition of a trigger is parsed at every insert.';
comment on column idem_private.reservation.put_off is
'The check at commit came too early, within reserve, and will come again.';
comment on column idem_private.reservation.lease is 'Length of the lease as reserved, for renewals that name none.';
comment on column idem_private.reservation.lease_until is
'Presumed alive until then; set back when the owner gives up. Null in atomic mode.';
comment on column idem_private.reservation.released_at is
'The owner said that the work did not happen, and an earlier attempt or a checkpoint keeps the row.';
comment on column idem_private.reservation.completed_at is 'Set by completion, with the answer.';
