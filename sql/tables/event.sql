-- What the row in idem_private.reservation cannot tell, because it only holds how things are now. Nothing is written
-- here on the way from reserve to complete, by a replay, run or once. Events of a key are written under the lock of
-- its row, so that their numbers follow each other as they happened.
create table idem_private.event (
    scope text collate "C" not null,
    key text collate "C" not null,
    number bigint generated always as identity,
    life timestamptz not null,
    at timestamptz not null,
    event text not null,
    attempt int not null,
    by_role name,
    reason text,
    detail jsonb,
    primary key (scope, key, number)
);

create index event_age on idem_private.event (at);

comment on table idem_private.event is 'Takeovers, lapses, claims, deferrals, releases, and what operators did.';
comment on column idem_private.event.life is 'created_at of the reservation: tells one life of the key from the next.';
comment on column idem_private.event.by_role is 'Who called; null where time alone did it.';
comment on column idem_private.event.reason is 'Why, in the words of the owner, the resolver or the operator.';
