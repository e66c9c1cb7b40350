create schema idem;

create schema idem_private;

create type idem.http_reservation as (
    outcome text,
    key text,
    token uuid,
    attempt integer,
    downstream_key uuid,
    recovery_point text,
    state jsonb,
    status integer,
    headers jsonb,
    body bytea
);

create type idem.lapsed_reservation as (
    scope text,
    key text,
    token uuid,
    attempt integer,
    downstream_key uuid,
    recovery_point text,
    state jsonb,
    policy text,
    created_at timestamp with time zone,
    lapsed_at timestamp with time zone,
    claims integer,
    reason text
);

create type idem.reservation as (
    outcome text,
    token uuid,
    attempt integer,
    downstream_key uuid,
    recovery_point text,
    state jsonb,
    status integer,
    headers jsonb,
    body bytea,
    mismatched text[],
    retry_after interval,
    created_at timestamp with time zone,
    lease_until timestamp with time zone,
    completed_at timestamp with time zone,
    expires_at timestamp with time zone
);

create type idem.response as (
    status integer,
    headers jsonb,
    body bytea
);

create table idem_private.access (
    role regrole not null,
    given text collate "C" not null,
    constraint access_pkey PRIMARY KEY (role, given)
);

create table idem_private.alembic_version (
    version_num character varying(32) not null,
    constraint alembic_version_pkc PRIMARY KEY (version_num)
);

create table idem_private.event (
    scope text collate "C" not null,
    key text collate "C" not null,
    number bigint not null,
    life timestamp with time zone not null,
    at timestamp with time zone not null,
    event text not null,
    attempt integer not null,
    by_role name,
    reason text,
    detail jsonb,
    constraint event_pkey PRIMARY KEY (scope, key, number)
);

create table idem_private.last_purge (
    singleton boolean not null default true,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    removed bigint not null default 0,
    caught_up boolean not null default false,
    constraint last_purge_pkey PRIMARY KEY (singleton),
    constraint last_purge_singleton_check CHECK (singleton)
) with (fillfactor=50);

create table idem_private.object (
    kind text collate "C" not null,
    name text collate "C" not null,
    part_of text collate "C",
    definition jsonb not null,
    constraint object_pkey PRIMARY KEY (kind, name)
);

create table idem_private.policy (
    name text collate "C" not null,
    ttl interval not null default '24:00:00'::interval,
    lease interval not null default '00:01:00'::interval,
    on_lapse text not null default 'hold'::text,
    max_attempts integer,
    max_claims integer not null default 10,
    retry_after interval not null default '00:00:01'::interval,
    min_retention interval not null default '01:00:00'::interval,
    tombstone interval not null default '00:00:00'::interval,
    required boolean not null default false,
    methods text[] not null default '{POST,PATCH}'::text[],
    key_min_length integer not null default 1,
    key_max_length integer not null default 255,
    key_pattern text,
    release_statuses integer[] not null default '{401,403,425,429}'::integer[],
    drop_headers text[] not null default ARRAY['connection'::text, 'keep-alive'::text, 'proxy-authenticate'::text, 'proxy-authorization'::text, 'proxy-connection'::text, 'te'::text, 'trailer'::text, 'transfer-encoding'::text, 'upgrade'::text, 'content-length'::text, 'date'::text, 'set-cookie'::text, 'www-authenticate'::text, 'request-id'::text, 'x-request-id'::text, 'correlation-id'::text, 'x-correlation-id'::text, 'ratelimit'::text, 'ratelimit-policy'::text, 'ratelimit-limit'::text, 'ratelimit-remaining'::text, 'ratelimit-reset'::text, 'x-ratelimit-limit'::text, 'x-ratelimit-remaining'::text, 'x-ratelimit-reset'::text],
    max_body_bytes integer not null default 1048576,
    max_batch integer not null default 200,
    ignore text[],
    include text[],
    profile text not null default 'ietf'::text,
    problem_type_base text,
    replay_header text,
    scopes_bound boolean not null default false,
    constraint policy_pkey PRIMARY KEY (name)
);

create table idem_private.reservation (
    scope text collate "C" not null,
    key text collate "C" not null,
    fingerprint bytea,
    fields jsonb,
    policy text collate "C" not null,
    created_at timestamp with time zone not null,
    expires_at timestamp with time zone not null,
    expired_at timestamp with time zone,
    purge_at timestamp with time zone,
    owned_at timestamp with time zone,
    owner_xid xid8,
    token uuid,
    attempt integer not null,
    leased boolean not null,
    must_complete boolean not null default false,
    put_off boolean not null default false,
    lease interval,
    lease_until timestamp with time zone,
    recovery_point text,
    state jsonb,
    released_at timestamp with time zone,
    completed_at timestamp with time zone,
    status integer,
    headers jsonb,
    body bytea,
    constraint reservation_pkey PRIMARY KEY (scope, key)
) with (fillfactor=70, autovacuum_vacuum_scale_factor=0.05);

create table idem_private.retired_policy (
    name text collate "C" not null,
    ttl interval not null,
    lease interval not null,
    on_lapse text not null,
    max_attempts integer,
    max_claims integer not null,
    retry_after interval not null,
    min_retention interval not null,
    tombstone interval not null,
    required boolean not null,
    methods text[] not null,
    key_min_length integer not null,
    key_max_length integer not null,
    key_pattern text,
    release_statuses integer[] not null,
    drop_headers text[] not null,
    max_body_bytes integer not null,
    max_batch integer not null,
    ignore text[],
    include text[],
    profile text not null,
    problem_type_base text,
    replay_header text,
    scopes_bound boolean not null,
    constraint retired_policy_pkey PRIMARY KEY (name)
);

create table idem_private.scope_binding (
    role regrole not null,
    prefix text collate "C" not null,
    constraint scope_binding_pkey PRIMARY KEY (role, prefix)
);

create table idem_private.secret (
    singleton boolean not null default true,
    value bytea not null,
    constraint secret_pkey PRIMARY KEY (singleton),
    constraint secret_singleton_check CHECK (singleton),
    constraint secret_value_check CHECK ((length(value) = 64))
);

create table idem_private.testing (
    database oid not null,
    enabled_at timestamp with time zone not null default clock_timestamp(),
    enabled_by name not null,
    constraint testing_pkey PRIMARY KEY (database)
);

create table idem_private.unfinished (
    scope text collate "C" not null,
    key text collate "C" not null,
    claims integer not null default 0,
    claim_after timestamp with time zone,
    reason text,
    constraint unfinished_pkey PRIMARY KEY (scope, key)
) with (fillfactor=70);

CREATE INDEX event_age ON idem_private.event USING btree (at);

CREATE INDEX reservation_expiry ON idem_private.reservation USING btree (COALESCE(purge_at, expires_at));

CREATE TRIGGER check_policy BEFORE INSERT OR UPDATE ON idem_private.policy FOR EACH ROW EXECUTE FUNCTION idem_private.check_policy();

CREATE TRIGGER check_whole_policy AFTER INSERT OR UPDATE ON idem_private.policy FOR EACH ROW EXECUTE FUNCTION idem_private.check_whole_policy();

CREATE TRIGGER retire_policy BEFORE DELETE ON idem_private.policy FOR EACH ROW EXECUTE FUNCTION idem_private.retire_policy();

CREATE TRIGGER revive_policy AFTER INSERT ON idem_private.policy FOR EACH ROW EXECUTE FUNCTION idem_private.revive_policy();

CREATE CONSTRAINT TRIGGER reservation_completed AFTER INSERT OR UPDATE OF token ON idem_private.reservation DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.must_complete) EXECUTE FUNCTION idem_private.require_completion();

CREATE CONSTRAINT TRIGGER reservation_left_behind AFTER INSERT OR UPDATE OF token ON idem_private.reservation DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((NOT new.leased) AND (new.completed_at IS NULL))) EXECUTE FUNCTION idem_private.note_left_behind();

CREATE TRIGGER scope_binding_changed AFTER INSERT OR DELETE OR TRUNCATE ON idem_private.scope_binding FOR EACH STATEMENT EXECUTE FUNCTION idem_private.note_scopes_bound();

create function idem.bind_scope(
    role name,
    prefix text
) returns void
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.checkpoint(
    scope text,
    key text,
    token uuid,
    recovery_point text,
    state jsonb default NULL::jsonb
) returns boolean
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.claim_lapsed(
    max_rows integer default 10,
    lease interval default NULL::interval,
    policy text default NULL::text,
    scope text default NULL::text,
    key text default NULL::text
) returns SETOF idem.lapsed_reservation
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.complete(
    scope text,
    key text,
    token uuid,
    status integer default NULL::integer,
    headers jsonb default NULL::jsonb,
    body bytea default NULL::bytea
) returns boolean
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.defer(
    scope text,
    key text,
    token uuid,
    retry_in interval default NULL::interval,
    reason text default NULL::text
) returns boolean
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.disable_testing() returns void
language sql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.distribute() returns void
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.downstream_key(
    scope text,
    key text,
    step text default ''::text
) returns uuid
language plpgsql stable security definer
set search_path=pg_catalog, pg_temp;

create function idem.enable_testing() returns void
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.extend(
    scope text,
    key text,
    token uuid,
    lease interval default NULL::interval
) returns timestamp with time zone
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.fingerprint(
    method text,
    path text,
    body bytea default NULL::bytea,
    content_type text default NULL::text,
    ignore text[] default NULL::text[],
    include text[] default NULL::text[]
) returns bytea
language plpgsql stable security definer
set search_path=pg_catalog, pg_temp;

create function idem.fingerprint_fields(
    body bytea,
    content_type text default NULL::text,
    ignore text[] default NULL::text[],
    include text[] default NULL::text[]
) returns jsonb
language plpgsql stable security definer
set search_path=pg_catalog, pg_temp;

create function idem.forget(
    scope text,
    key text default NULL::text
) returns bigint
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.grant_client(
    role name
) returns void
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.grant_monitor(
    role name
) returns void
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.grant_operator(
    role name
) returns void
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.grant_resolver(
    role name
) returns void
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.health() returns TABLE(check_name text, ok boolean, detail text, fix text)
language sql volatile security definer
set search_path=pg_catalog, pg_temp
set jit=off;

create function idem.history(
    scope text,
    key text
) returns TABLE(at timestamp with time zone, event text, attempt integer, by_role name, reason text, detail jsonb)
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.http_complete(
    scope text,
    key text,
    token uuid,
    status integer,
    headers jsonb default NULL::jsonb,
    body bytea default NULL::bytea
) returns text
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.http_reserve(
    scope text,
    key_header text,
    method text,
    path text,
    body bytea default NULL::bytea,
    content_type text default NULL::text,
    mode text default 'atomic'::text,
    lease interval default NULL::interval,
    state jsonb default NULL::jsonb,
    token uuid default NULL::uuid,
    policy text default 'default'::text
) returns idem.http_reservation
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.json_response(
    status integer,
    body json,
    headers jsonb default NULL::jsonb
) returns idem.response
language plpgsql immutable security definer
set search_path=pg_catalog, pg_temp;

create function idem.lookup(
    scope text,
    key text
) returns idem.reservation
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.once(
    scope text,
    key text,
    policy text default 'messages'::text
) returns text
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.once_many(
    scope text,
    keys text[],
    policy text default 'messages'::text
) returns TABLE(ordinal integer, key text, outcome text)
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.once_undo(
    scope text,
    keys text[]
) returns integer
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.policy_document(
    policy text default 'default'::text
) returns jsonb
language plpgsql stable security definer
set search_path=pg_catalog, pg_temp;

create function idem.purge(
    max_rows integer default 10000
) returns bigint
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp
set enable_seqscan=off
set enable_bitmapscan=off
set enable_sort=off
set enable_hashjoin=off
set enable_mergejoin=off
set jit=off;

create procedure idem.purge_all(
    max_rows integer default 10000,
    max_time interval default '00:00:45'::interval
) returns 
language plpgsql volatile;

create function idem.purge_state() returns TABLE(started_at timestamp with time zone, ended_at timestamp with time zone, removed bigint, due bigint, due_since timestamp with time zone)
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp
set enable_seqscan=off
set enable_bitmapscan=off
set enable_sort=off;

create function idem.release(
    scope text,
    key text,
    token uuid
) returns boolean
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.reserve(
    scope text,
    key text,
    fingerprint bytea default NULL::bytea,
    mode text default 'atomic'::text,
    lease interval default NULL::interval,
    fields jsonb default NULL::jsonb,
    state jsonb default NULL::jsonb,
    token uuid default NULL::uuid,
    policy text default 'default'::text
) returns idem.reservation
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.resolve(
    scope text,
    key text,
    action text,
    reason text,
    attempt integer default NULL::integer,
    force boolean default false,
    status integer default NULL::integer,
    headers jsonb default NULL::jsonb,
    body bytea default NULL::bytea
) returns boolean
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.revoke_access(
    role name
) returns void
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.run(
    scope text,
    key text,
    fingerprint bytea,
    handler regprocedure,
    args jsonb,
    policy text default 'default'::text
) returns idem.reservation
language plpgsql volatile;

create function idem.run_begin(
    scope text,
    key text
) returns boolean
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.run_end(
    scope text,
    key text,
    fingerprint bytea,
    token uuid,
    response idem.response,
    policy text default 'default'::text
) returns idem.reservation
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.schedule(
    schedule text default '* * * * *'::text,
    max_rows integer default 10000,
    max_time interval default NULL::interval,
    job_name text default NULL::text
) returns bigint
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.stats() returns TABLE(policy text, state text, keys bigint, oldest timestamp with time zone, bytes bigint, estimated boolean)
language sql volatile security definer
set search_path=pg_catalog, pg_temp
set jit=off;

create function idem.unbind_scope(
    role name,
    prefix text default NULL::text
) returns void
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.unschedule() returns integer
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem.version() returns text
language sql immutable security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.answer(
    outcome text,
    row_ idem_private.reservation,
    min_retention interval,
    policy_wait interval,
    fields jsonb,
    at timestamp with time zone
) returns idem.reservation
language plpgsql stable;

create function idem_private.back_off(
    claims integer
) returns interval
language sql immutable;

create function idem_private.begin_leased() returns void
language plpgsql volatile;

create function idem_private.bound_prefixes() returns text[]
language sql stable security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.busy(
    policy_wait interval
) returns idem.reservation
language sql immutable;

create function idem_private.caller() returns name
language sql stable;

create function idem_private.canonical_json(
    doc jsonb
) returns text
language plpgsql immutable;

create function idem_private.check_answer(
    status integer,
    headers jsonb
) returns void
language plpgsql immutable;

create function idem_private.check_call(
    scope text,
    key text,
    policy text
) returns void
language plpgsql stable;

create function idem_private.check_claim(
    max_rows integer,
    policy text,
    scope text,
    key text
) returns void
language plpgsql stable;

create function idem_private.check_fields(
    fields jsonb
) returns void
language plpgsql immutable;

create function idem_private.check_interval(
    argument text,
    length interval
) returns interval
language plpgsql stable;

create function idem_private.check_key(
    scope text,
    key text,
    min_length integer,
    max_length integer,
    pattern text
) returns void
language plpgsql stable;

create function idem_private.check_max_rows(
    max_rows integer
) returns integer
language plpgsql stable;

create function idem_private.check_mode(
    mode text,
    lease interval
) returns boolean
language plpgsql immutable;

create function idem_private.check_pointers(
    argument text,
    pointers text[]
) returns void
language plpgsql immutable;

create function idem_private.check_policy() returns trigger
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.check_request(
    method text,
    path text
) returns void
language plpgsql immutable;

create function idem_private.check_resolution(
    scope text,
    key text,
    action text,
    reason text,
    status integer,
    headers jsonb,
    body bytea
) returns void
language plpgsql stable;

create function idem_private.check_role(
    role name
) returns void
language plpgsql stable;

create function idem_private.check_scope(
    scope text
) returns void
language plpgsql stable;

create function idem_private.check_whole_policy() returns trigger
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.claim(
    held idem_private.reservation,
    lease interval,
    at timestamp with time zone
) returns idem.lapsed_reservation
language plpgsql volatile;

create function idem_private.clock() returns timestamp with time zone
language sql volatile;

create function idem_private.commit_durably() returns void
language plpgsql volatile;

create function idem_private.cron_period(
    schedule text
) returns interval
language sql immutable;

create function idem_private.cron_version() returns integer[]
language sql stable;

create function idem_private.derive_key(
    secret bytea,
    scope text,
    key text,
    step text
) returns uuid
language sql stable;

create function idem_private.drift() returns TABLE(object text, problem text, detail text)
language sql stable
set search_path=pg_catalog, pg_temp;

create function idem_private.exact_interval(
    length interval
) returns interval
language sql immutable;

create function idem_private.finished_phase(
    expires_at timestamp with time zone,
    completed_at timestamp with time zone,
    expired_at timestamp with time zone,
    min_retention interval,
    tombstone interval,
    at timestamp with time zone
) returns text
language sql stable;

create function idem_private.forget_events(
    scope text,
    key text
) returns bigint
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.free_key(
    held idem_private.reservation,
    at timestamp with time zone,
    keep boolean,
    token uuid
) returns void
language plpgsql volatile;

create function idem_private.give_access(
    role name,
    given text
) returns void
language plpgsql volatile;

create function idem_private.granted_objects(
    role name
) returns SETOF text
language sql stable;

create function idem_private.header_fits(
    key text,
    settings idem_private.policy
) returns boolean
language plpgsql stable;

create function idem_private.headers_are_pairs(
    headers jsonb
) returns boolean
language sql immutable;

create function idem_private.health_of_guards() returns TABLE(check_name text, ok boolean, detail text, fix text)
language sql stable;

create function idem_private.health_of_installation() returns TABLE(check_name text, ok boolean, detail text, fix text)
language plpgsql stable;

create function idem_private.health_of_job() returns TABLE(check_name text, ok boolean, detail text, fix text)
language plpgsql volatile;

create function idem_private.health_of_keys() returns TABLE(check_name text, ok boolean, detail text, fix text)
language sql volatile;

create function idem_private.health_of_purge() returns TABLE(check_name text, ok boolean, detail text, fix text)
language plpgsql volatile;

create function idem_private.health_of_server() returns TABLE(check_name text, ok boolean, detail text, fix text)
language sql stable;

create function idem_private.health_of_settings() returns TABLE(check_name text, ok boolean, detail text, fix text)
language sql stable;

create function idem_private.hold(
    scope text,
    key text,
    token uuid
) returns idem_private.reservation
language plpgsql volatile;

create function idem_private.http_problem(
    outcome text,
    settings idem_private.policy,
    mismatched text[],
    retry_after interval
) returns idem.response
language plpgsql stable;

create function idem_private.http_problems(
    profile text
) returns TABLE(outcome text, status integer, code text, title text, detail text, stripe_type text)
language sql immutable;

create function idem_private.is_distributed() returns boolean
language plpgsql stable;

create function idem_private.is_lapsed(
    row_ idem_private.reservation,
    at timestamp with time zone
) returns boolean
language sql stable;

create function idem_private.is_within(
    scope text,
    prefixes text[]
) returns boolean
language sql immutable
set search_path=pg_catalog, pg_temp;

create function idem_private.json_fields(
    roots jsonb,
    value text,
    mark text,
    secret bytea
) returns jsonb
language plpgsql immutable;

create function idem_private.judge(
    row_ idem_private.reservation,
    settings idem_private.policy,
    fingerprint bytea,
    token uuid,
    at timestamp with time zone
) returns text
language sql stable;

create function idem_private.key_fits(
    scope text,
    key text,
    min_length integer,
    max_length integer,
    pattern text
) returns boolean
language sql immutable;

create function idem_private.key_of_header(
    header text
) returns text
language sql immutable;

create function idem_private.keyed_hash(
    secret bytea,
    message bytea
) returns bytea
language sql immutable;

create function idem_private.lapsed_at(
    row_ idem_private.reservation
) returns timestamp with time zone
language sql immutable;

create function idem_private.lapsed_keys(
    at timestamp with time zone,
    prefixes text[],
    wanted_policy text,
    wanted_scope text,
    wanted_key text
) returns TABLE(scope text, key text)
language plpgsql stable;

create function idem_private.lock_id(
    scope text,
    key text
) returns bigint
language sql immutable;

create function idem_private.mark_existing(
    scope text,
    key text,
    policy text,
    ttl interval
) returns text
language plpgsql volatile;

create function idem_private.may_claim(
    claims integer,
    max_claims integer,
    claim_after timestamp with time zone,
    at timestamp with time zone
) returns boolean
language sql immutable;

create function idem_private.mismatched_fields(
    stored jsonb,
    given jsonb
) returns text[]
language sql immutable;

create function idem_private.moved_clock() returns timestamp with time zone
language plpgsql volatile;

create function idem_private.note_leased(
    scope text,
    key text,
    renewed boolean
) returns void
language plpgsql volatile;

create function idem_private.note_left_behind() returns trigger
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.note_purge(
    started_at timestamp with time zone,
    continued boolean,
    removed bigint,
    caught_up boolean
) returns boolean
language plpgsql volatile;

create function idem_private.note_scopes_bound() returns trigger
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.note_unchanged(
    scope text,
    key text,
    held boolean
) returns void
language plpgsql volatile;

create function idem_private.only_included(
    doc jsonb,
    include text[]
) returns jsonb
language sql immutable;

create function idem_private.owned_here(
    owner_xid xid8,
    owned_at timestamp with time zone
) returns boolean
language sql stable;

create function idem_private.part_fields(
    names bytea[],
    contents bytea[],
    ignore text[],
    include text[],
    secret bytea,
    out content bytea,
    out fields jsonb
) returns record
language plpgsql stable;

create function idem_private.part_head(
    head text
) returns text
language plpgsql immutable;

create function idem_private.part_pointers(
    names bytea[]
) returns text[]
language plpgsql immutable;

create function idem_private.percent_decoded(
    escaped text
) returns bytea
language sql immutable;

create function idem_private.phase(
    row_ idem_private.reservation,
    min_retention interval,
    tombstone interval,
    at timestamp with time zone
) returns text
language sql stable;

create function idem_private.plain_json(
    value json,
    mark text,
    depth integer
) returns jsonb
language plpgsql immutable;

create function idem_private.pointer_path(
    doc jsonb,
    pointer text
) returns text[]
language plpgsql immutable;

create function idem_private.policy_of(
    name text
) returns idem_private.policy
language plpgsql stable;

create function idem_private.present_objects() returns SETOF idem_private.object
language sql stable
set search_path=pg_catalog, pg_temp
set DateStyle=ISO, YMD
set IntervalStyle=postgres
set quote_all_identifiers=off;

create function idem_private.purge_events(
    max_rows integer
) returns bigint
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.purge_events_of_nodes(
    max_rows integer
) returns bigint
language plpgsql volatile;

create function idem_private.purge_jobs() returns TABLE(jobid bigint, jobname text, username text, active boolean)
language plpgsql stable;

create function idem_private.purge_nodes(
    max_rows integer,
    prefixes text[]
) returns bigint
language plpgsql volatile;

create function idem_private.purge_scope(
    scope text,
    keys text[],
    at timestamp with time zone
) returns bigint
language plpgsql volatile;

create function idem_private.read_form(
    body bytea,
    out names bytea[],
    out contents bytea[]
) returns record
language plpgsql immutable;

create function idem_private.read_json(
    body bytea,
    mark text
) returns jsonb
language plpgsql immutable;

create function idem_private.read_multipart(
    body bytea,
    content_type text,
    out names bytea[],
    out contents bytea[]
) returns record
language plpgsql immutable;

create function idem_private.read_request(
    method text,
    path text,
    body bytea,
    content_type text,
    ignore text[],
    include text[],
    out fingerprint bytea,
    out fields jsonb
) returns record
language plpgsql stable;

create function idem_private.reader(
    out at timestamp with time zone,
    out prefixes text[]
) returns record
language sql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.real_expiry(
    expires_at timestamp with time zone,
    completed_at timestamp with time zone,
    min_retention interval
) returns timestamp with time zone
language sql stable;

create function idem_private.record_event(
    held idem_private.reservation,
    event text,
    at timestamp with time zone,
    reason text,
    detail jsonb
) returns void
language sql volatile;

create function idem_private.record_lapse(
    held idem_private.reservation
) returns void
language sql volatile;

create function idem_private.record_objects() returns void
language sql volatile
set search_path=pg_catalog, pg_temp;

create function idem_private.refuse_absent(
    scope text,
    key text
) returns void
language plpgsql volatile;

create function idem_private.refuse_headers() returns void
language plpgsql stable;

create function idem_private.refuse_owner_call(
    scope text,
    key text,
    token uuid,
    leased_only boolean
) returns void
language plpgsql volatile;

create function idem_private.refuse_policy(
    name text,
    problem text
) returns void
language plpgsql stable;

create function idem_private.refuse_resolution(
    held idem_private.reservation,
    phase text
) returns void
language plpgsql stable;

create function idem_private.refuse_without_citus() returns void
language plpgsql stable;

create function idem_private.refuse_without_cron(
    job_name text,
    schedule text,
    command text
) returns void
language plpgsql stable;

create function idem_private.renew_access() returns void
language sql volatile
set search_path=pg_catalog, pg_temp;

create function idem_private.renew_lease(
    held idem_private.reservation,
    lease interval
) returns idem_private.reservation
language plpgsql volatile;

create function idem_private.renew_scopes_bound() returns void
language plpgsql volatile;

create function idem_private.replace_expired(
    held idem_private.reservation,
    fingerprint bytea,
    fields jsonb,
    policy text,
    ttl interval,
    leased boolean,
    lease interval,
    state jsonb,
    token uuid,
    completed_at timestamp with time zone
) returns idem_private.reservation
language plpgsql volatile;

create function idem_private.replay_header(
    settings idem_private.policy
) returns text
language sql immutable;

create function idem_private.require_completion() returns trigger
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.require_fresh_snapshot(
    scope text,
    key text
) returns void
language plpgsql volatile;

create function idem_private.reserve_existing(
    scope text,
    key text,
    fingerprint bytea,
    fields jsonb,
    policy text,
    ttl interval,
    leased boolean,
    lease interval,
    default_lease interval,
    state jsonb,
    token uuid
) returns idem.reservation
language plpgsql volatile;

create function idem_private.retire_policy() returns trigger
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.retry_after(
    policy_wait interval,
    lease_left interval
) returns interval
language sql immutable;

create function idem_private.revive_policy() returns trigger
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.rights() returns TABLE(object text, privileges text, given_by text[])
language sql immutable;

create function idem_private.short_hash(
    secret bytea,
    message bytea
) returns text
language sql immutable;

create function idem_private.single_transaction() returns boolean
language sql stable;

create function idem_private.started(
    owned idem_private.reservation
) returns idem.reservation
language plpgsql stable;

create function idem_private.stored_headers(
    headers jsonb,
    settings idem_private.policy
) returns jsonb
language plpgsql immutable;

create function idem_private.table_size(
    out bytes numeric,
    out rows numeric
) returns record
language plpgsql volatile;

create function idem_private.take_over(
    held idem_private.reservation,
    leased boolean,
    lease interval,
    state jsonb,
    token uuid
) returns idem_private.reservation
language plpgsql volatile;

create function idem_private.testing_enabled() returns boolean
language sql stable security definer
set search_path=pg_catalog, pg_temp;

create function idem_private.trim_job_runs() returns void
language plpgsql volatile;

create function idem_private.unfinished_keys() returns TABLE(policy text, state text, created_at timestamp with time zone, lapsed_at timestamp with time zone, retries boolean, claimable boolean)
language plpgsql stable
set search_path=pg_catalog, pg_temp
set enable_seqscan=off
set jit=off;

create function idem_private.without_ignored(
    doc jsonb,
    ignore text[]
) returns jsonb
language plpgsql immutable;

create function idem_private.write_policy() returns trigger
language plpgsql volatile security definer
set search_path=pg_catalog, pg_temp;

create view idem.keys (
    scope text collate "C",
    key text collate "C",
    policy text collate "C",
    mode text,
    outcome text,
    attempt integer,
    created_at timestamp with time zone,
    lease_until timestamp with time zone,
    lapsed_at timestamp with time zone,
    released_at timestamp with time zone,
    completed_at timestamp with time zone,
    expires_at timestamp with time zone,
    status integer,
    recovery_point text,
    unfinished boolean,
    on_lapse text,
    max_attempts integer,
    claims integer,
    max_claims integer,
    claim_after timestamp with time zone,
    reason text
) with (security_barrier=true);

create view idem.policies (
    name text collate "C",
    ttl interval,
    lease interval,
    on_lapse text,
    max_attempts integer,
    max_claims integer,
    retry_after interval,
    min_retention interval,
    tombstone interval,
    required boolean,
    methods text[],
    key_min_length integer,
    key_max_length integer,
    key_pattern text,
    release_statuses integer[],
    drop_headers text[],
    max_body_bytes integer,
    max_batch integer,
    ignore text[],
    include text[],
    profile text,
    problem_type_base text,
    replay_header text
);
