create table idem_private.policy (
    name text collate "C" primary key,
    ttl interval not null default '24 hours',
    lease interval not null default '60 seconds',
    on_lapse text not null default 'hold',
    max_attempts int,
    max_claims int not null default 10,
    retry_after interval not null default '1 second',
    min_retention interval not null default '1 hour',
    tombstone interval not null default '0 seconds',
    required boolean not null default false,
    methods text[] not null default '{POST,PATCH}',
    key_min_length int not null default 1,
    key_max_length int not null default 255,
    key_pattern text,
    release_statuses int[] not null default '{401,403,425,429}',
    drop_headers text[] not null default array[
        'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer',
        'transfer-encoding', 'upgrade', 'content-length', 'date', 'set-cookie', 'www-authenticate',
        'request-id', 'x-request-id', 'correlation-id', 'x-correlation-id',
        'ratelimit', 'ratelimit-policy', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset',
        'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'
    ],
    max_body_bytes int not null default 1048576,
    max_batch int not null default 200,
    ignore text[],
    include text[],
    profile text not null default 'ietf',
    problem_type_base text,
    replay_header text,
    scopes_bound boolean not null default false
);

comment on table idem_private.policy is 'Named settings; public as the view idem.policies.';
comment on column idem_private.policy.scopes_bound is
'No setting: whether idem_private.scope_binding has rows, the same in all policies. The hot paths read a policy anyway.';

-- A reservation reads its policy without locking it, so one may be inserted while its policy is being deleted. The
-- settings of a deleted policy stay here, so that such a row keeps them.
create table idem_private.retired_policy (like idem_private.policy including indexes);

comment on table idem_private.retired_policy is
'Settings of deleted policies, for reservations made while the deletion was under way.';
