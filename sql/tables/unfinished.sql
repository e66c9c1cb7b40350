-- The open leased keys, so that finding lapsed ones reads no completed key. The row in idem_private.reservation alone
-- decides; this one is found by it and is written under its lock.
create table idem_private.unfinished (
    scope text collate "C" not null,
    key text collate "C" not null,
    claims int not null default 0,
    claim_after timestamptz,
    reason text,
    primary key (scope, key)
) with (fillfactor = 70);

comment on table idem_private.unfinished is 'One row per leased reservation that is not completed.';
comment on column idem_private.unfinished.claims is 'How often a resolver has claimed this attempt.';
comment on column idem_private.unfinished.claim_after is 'No claim before then: the owner asked for it.';
comment on column idem_private.unfinished.reason is 'Why the owner gave up, in its own words.';
