-- Made from sql/ by `make freeze`; do not edit.

-- sql/schemas.sql
-- idem_private is made by preamble.sql: Alembic's version table lives there, so it comes before any revision.
create schema idem;

comment on schema idem is 'pyidem: idempotency keys. Everything in here is API.';

revoke all on schema idem from public;

-- sql/types/reservation.sql
create type idem.reservation as (
    outcome text,
    token uuid,
    attempt int,
    downstream_key uuid,
    recovery_point text,
    state jsonb,
    status int,
    headers jsonb,
    body bytea,
    mismatched text[],
    retry_after interval,
    created_at timestamptz,
    lease_until timestamptz,
    completed_at timestamptz,
    expires_at timestamptz
);

comment on type idem.reservation is
'What became of a (scope, key): the answer of reserve and lookup. Token, downstream_key, recovery_point and state come only with outcome started; status, headers and body only with a completed one.';

-- sql/types/response.sql
create type idem.response as (
    status int,
    headers jsonb,
    body bytea
);

comment on type idem.response is
'What a handler of idem.run returns. Headers are a JSON array of [name, value] pairs.';

-- sql/types/lapsed_reservation.sql
create type idem.lapsed_reservation as (
    scope text,
    key text,
    token uuid,
    attempt int,
    downstream_key uuid,
    recovery_point text,
    state jsonb,
    policy text,
    created_at timestamptz,
    lapsed_at timestamptz,
    claims int,
    reason text
);

comment on type idem.lapsed_reservation is
'A lapsed key that idem.claim_lapsed has handed to a resolver, with the token to end it by.';

-- sql/types/http_reservation.sql
create type idem.http_reservation as (
    outcome text,
    key text,
    token uuid,
    attempt int,
    downstream_key uuid,
    recovery_point text,
    state jsonb,
    status int,
    headers jsonb,
    body bytea
);

comment on type idem.http_reservation is
'What http_reserve answers. Status null: do the work. Otherwise status, headers and body are the complete answer to send.';

-- sql/tables/policy.sql
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

-- sql/tables/reservation.sql
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

-- sql/tables/unfinished.sql
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

-- sql/tables/event.sql
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

-- sql/tables/secret.sql
-- One SHA-256 block of random bits: a UUID gives 122, three make more than each half needs. It travels with a dump, so
-- that derived keys and fingerprints stay the same after a restore.
create table idem_private.secret (
    singleton boolean primary key default true check (singleton),
    value bytea not null check (length(value) = 64)
);

comment on table idem_private.secret is 'The secret of this installation, for idem_private.keyed_hash; one row.';

insert into idem_private.secret (value)
select
    sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
    || sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

-- sql/tables/testing.sql
-- Bound to the database's oid: a dump of a test database restored elsewhere, or a clone, does not inherit it.
create table idem_private.testing (
    database oid primary key,
    enabled_at timestamptz not null default clock_timestamp(),
    enabled_by name not null
);

comment on table idem_private.testing is
'Databases in which the settings idem.clock_offset and idem.single_transaction are honoured.';

-- sql/tables/last_purge.sql
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

-- sql/tables/object.sql
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

-- sql/tables/access.sql
-- Roles are kept as oids, so that they may be renamed; a dump writes their names.
create table idem_private.access (
    role regrole not null,
    given text collate "C" not null,
    primary key (role, given)
);

comment on table idem_private.access is
'Which role holds which grant (client, resolver, monitor, operator); an upgrade gives it what was added.';

-- sql/tables/scope_binding.sql
-- As long as it is empty every role may name any scope. Roles are kept
-- as oids, so that a binding outlives the renaming of its role; a dump writes their names.
create table idem_private.scope_binding (
    role regrole not null,
    prefix text collate "C" not null,
    primary key (role, prefix)
);

comment on table idem_private.scope_binding is 'Which scopes a role may name; one that has none here may name any.';
comment on column idem_private.scope_binding.prefix is 'As idem_private.is_within understands it.';

-- sql/private/caller.sql
-- Inside a SECURITY DEFINER function current_user is the owner; the setting role still holds what SET ROLE took on.
create or replace function idem_private.caller() returns name
language sql stable as $$
    select coalesce(nullif(current_setting('role'), 'none'), session_user)::name
$$;

comment on function idem_private.caller() is 'The role that the caller acts as.';

revoke all on function idem_private.caller() from public;

-- sql/private/is_distributed.sql
-- Nothing of Citus is named outside dynamic SQL, since it may not be there.
create or replace function idem_private.is_distributed() returns boolean
language plpgsql stable as $$
declare
    distributed boolean := false;
begin
    if to_regclass('pg_catalog.pg_dist_partition') is not null then
        execute
            'select exists (
                select from pg_catalog.pg_dist_partition as p
                where p.logicalrelid = ''idem_private.reservation''::pg_catalog.regclass
            )'
        into distributed;
    end if;
    return distributed;
end
$$;

comment on function idem_private.is_distributed() is 'Whether idem.distribute has put the keys on the nodes of a Citus cluster.';

revoke all on function idem_private.is_distributed() from public;

-- sql/private/bound_prefixes.sql
-- Whose rights the session can have: those of the session user and of the role that SET ROLE took on, and of every role
-- that they can become by SET ROLE or inherit from: a chain of memberships that can be set, then one of memberships
-- that inherit. Before PostgreSQL 16 every membership could be set. A superuser could be anybody, so only its own name
-- counts. Inside a SECURITY DEFINER function current_user tells nothing.
--
-- The prefixes of all of them add up, and where there is one the session is bound: no membership and no SET ROLE lifts
-- a binding.
create or replace function idem_private.bound_prefixes() returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    with recursive reachable (role, by_set) as (
        select quote_ident(acting.name)::regrole::oid, true
        from unnest(array[session_user, idem_private.caller()]) as acting (name)
        union
        select m.roleid, reachable.by_set and option.can_set
        from reachable
        inner join pg_roles as r on reachable.role = r.oid and not r.rolsuper
        inner join pg_auth_members as m on r.oid = m.member
        cross join lateral (
            select
                coalesce((to_jsonb(m) ->> 'set_option')::boolean, true) as can_set,
                coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, r.rolinherit) as inherits
        ) as option
        where option.inherits or (option.can_set and reachable.by_set)
    )

    select array_agg(b.prefix)
    from idem_private.scope_binding as b
    where b.role in (select reachable.role from reachable)
$$;

comment on function idem_private.bound_prefixes() is
'The prefixes of the scopes that the session may name, by all the roles that it is or can be; null where none is bound.';

revoke all on function idem_private.bound_prefixes() from public;

-- sql/private/is_within.sql
-- With prefix client:4 neither client:42 nor Client:4. The collation is fixed, since the caller's argument may bring
-- one that takes different characters for equal.
create or replace function idem_private.is_within(scope text, prefixes text[]) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select prefixes is null or exists (
        select from unnest(prefixes) as allowed (prefix)
        where scope collate "C" = allowed.prefix
            or starts_with(scope collate "C", allowed.prefix || ':')
            or starts_with(scope collate "C", allowed.prefix || '/')
            or (
                allowed.prefix collate "C" ~ '[!-/:-@[-`{-~]$' and starts_with(scope collate "C", allowed.prefix)
            )
    )
$$;

comment on function idem_private.is_within(text, text[]) is
'Whether a scope equals one of the prefixes, or continues it after a colon, a slash or the sign of punctuation that it ends with; null prefixes hold all.';

revoke all on function idem_private.is_within(text, text[]) from public;

-- sql/private/check_scope.sql
-- First in every public function that takes a scope. A null scope is nobody's; other checks refuse it.
create or replace function idem_private.check_scope(scope text) returns void
language plpgsql stable as $$
begin
    if not exists (select from idem_private.scope_binding) then
        return;
    end if;
    if check_scope.scope is not null
        and not idem_private.is_within(check_scope.scope, idem_private.bound_prefixes()) then
        raise exception using
            errcode = '42501',
            message = 'this role may not use this scope',
            detail = jsonb_build_object('code', 'scope_not_allowed', 'argument', 'scope')::text,
            hint = 'It is bound to other scopes, by itself or as a member of another role: see idem.bind_scope.';
    end if;
end
$$;

comment on function idem_private.check_scope(text) is
'Raises 42501 where the session is bound to other scopes; costs one look at an empty table while no role is bound.';

revoke all on function idem_private.check_scope(text) from public;

-- sql/private/renew_scopes_bound.sql
-- Whoever writes a policy meanwhile waits, and then reads the bindings of now: see idem_private.check_policy. An old
-- snapshot would leave out policies and bindings that were committed since.
create or replace function idem_private.renew_scopes_bound() returns void
language plpgsql volatile as $$
declare
    bound boolean;
begin
    lock table idem_private.policy in share row exclusive mode;
    bound := exists (select from idem_private.scope_binding);
    if current_setting('transaction_isolation') <> 'read committed'
        and (bound or exists (select from idem_private.policy as p where p.scopes_bound)) then
        raise exception using
            errcode = '25001',
            message = 'roles are bound to scopes in READ COMMITTED only',
            detail = jsonb_build_object('code', 'needs_read_committed')::text,
            hint = 'Begin a transaction with ISOLATION LEVEL READ COMMITTED.';
    end if;
    update idem_private.policy as p set scopes_bound = bound where p.scopes_bound <> bound;
end
$$;

comment on function idem_private.renew_scopes_bound() is 'Makes idem_private.policy.scopes_bound true to idem_private.scope_binding.';

revoke all on function idem_private.renew_scopes_bound() from public;

-- sql/private/note_scopes_bound.sql
create or replace function idem_private.note_scopes_bound() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.renew_scopes_bound();
    return null;
end
$$;

comment on function idem_private.note_scopes_bound() is 'Keeps idem_private.policy.scopes_bound.';

revoke all on function idem_private.note_scopes_bound() from public;

create or replace trigger scope_binding_changed
after insert or delete or truncate on idem_private.scope_binding
for each statement execute function idem_private.note_scopes_bound();

-- sql/private/testing_enabled.sql
create or replace function idem_private.testing_enabled() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select exists (
        select from idem_private.testing as t
        inner join pg_catalog.pg_database as d on t.database = d.oid
        where d.datname = current_database()
    )
$$;

comment on function idem_private.testing_enabled() is
'Whether this very database honours the settings for test suites.';

revoke all on function idem_private.testing_enabled() from public;

-- sql/private/moved_clock.sql
create or replace function idem_private.moved_clock() returns timestamptz
language plpgsql volatile as $$
begin
    if idem_private.testing_enabled() then
        return clock_timestamp() + current_setting('idem.clock_offset')::interval;
    end if;
    return clock_timestamp();
end
$$;

comment on function idem_private.moved_clock() is
'The clock of a session that has set idem.clock_offset, which counts only where testing is enabled.';

revoke all on function idem_private.moved_clock() from public;

-- sql/private/clock.sql
-- Without the setting, which is how production runs, this is inlined to clock_timestamp(). It is on every hot path, and
-- each part of an expression is prepared anew in every transaction: hence few of them.
create or replace function idem_private.clock() returns timestamptz
language sql volatile as $$
    select
        case
            when current_setting('idem.clock_offset', true) <> '' then idem_private.moved_clock()
            else clock_timestamp()
        end
$$;

comment on function idem_private.clock() is
'The only clock: the database''s, read when called, moved by idem.clock_offset where testing is enabled.';

revoke all on function idem_private.clock() from public;

-- sql/private/single_transaction.sql
create or replace function idem_private.single_transaction() returns boolean
language sql stable as $$
    select
        case
            when coalesce(current_setting('idem.single_transaction', true), '') = '' then false
            when idem_private.testing_enabled() then current_setting('idem.single_transaction', true)::boolean
            else false
        end
$$;

comment on function idem_private.single_transaction() is
'Whether leased mode may run inside one transaction, as test suites that roll back need it.';

revoke all on function idem_private.single_transaction() from public;

-- sql/private/commit_durably.sql
create or replace function idem_private.commit_durably() returns void
language plpgsql volatile as $$
begin
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;

comment on function idem_private.commit_durably() is
'Makes the commit of this transaction wait for the disk, also where the session has synchronous_commit off: the caller acts on it outside of the database.';

revoke all on function idem_private.commit_durably() from public;

-- sql/private/exact_interval.sql
-- Days and months added to a timestamptz depend on the session's time zone; seconds do not.
create or replace function idem_private.exact_interval(length interval) returns interval
language sql immutable as $$
    select make_interval(secs => extract(epoch from length)::double precision)
$$;

comment on function idem_private.exact_interval(interval) is
'The same length in hours, minutes and seconds: a day is 24 hours, whatever the time zone.';

revoke all on function idem_private.exact_interval(interval) from public;

-- sql/private/check_interval.sql
create or replace function idem_private.check_interval(argument text, length interval) returns interval
language plpgsql stable as $$
begin
    if length is null then
        return null;
    end if;
    if not isfinite(length) or length <= interval '0' or length > interval '36500 days' then
        raise exception using
            errcode = '22023',
            message = format('%s must be above zero and at most 36500 days', check_interval.argument),
            detail = jsonb_build_object('code', 'interval_out_of_range', 'argument', check_interval.argument)::text,
            hint = 'Intervals are lengths of time such as ''30 seconds''; leave the argument out for its default.';
    end if;
    return idem_private.exact_interval(length);
end
$$;

comment on function idem_private.check_interval(text, interval) is
'A length of time given by a caller, checked and made exact; null stays null.';

revoke all on function idem_private.check_interval(text, interval) from public;

-- sql/private/check_mode.sql
create or replace function idem_private.check_mode(mode text, lease interval) returns boolean
language plpgsql immutable as $$
begin
    if coalesce(check_mode.mode, 'atomic') = 'atomic' then
        if check_mode.lease is not null then
            raise exception using
                errcode = '22023',
                message = 'a lease goes with mode leased',
                detail = jsonb_build_object('code', 'lease_without_leased', 'argument', 'lease')::text,
                hint = 'An atomic reservation lives as long as its transaction.';
        end if;
        return false;
    end if;
    if check_mode.mode <> 'leased' then
        raise exception using
            errcode = '22023',
            message = 'unknown mode',
            detail = jsonb_build_object('code', 'unknown_mode', 'argument', 'mode')::text,
            hint = 'The modes are atomic and leased.';
    end if;
    return true;
end
$$;

comment on function idem_private.check_mode(text, interval) is
'Whether the mode is leased; raises 22023 for an unknown one, or a lease without it. Null is atomic.';

revoke all on function idem_private.check_mode(text, interval) from public;

-- sql/private/key_fits.sql
-- The quick yes for nearly every call; idem_private.check_key knows every rule, and says which one was broken. A
-- newline is in neither set of characters, so that one regular expression can look at both texts; and once they are
-- known to be ASCII, their bytes are their characters.
create or replace function idem_private.key_fits(
    scope text, key text, min_length int, max_length int, pattern text
) returns boolean
language sql immutable as $$
    select pattern is null and octet_length(key) between min_length and max_length and octet_length(scope) <= 255
        and (key || e'\n' || scope) collate "C" ~ '^[!#-~][ -~]*\n[!-~][ -~]*$'
$$;

comment on function idem_private.key_fits(text, text, int, int, text) is
'True only if the scope and the key are certainly acceptable: plain ASCII that begins with neither blank nor quote.';

revoke all on function idem_private.key_fits(text, text, int, int, text) from public;

-- sql/private/check_key.sql
-- The key and the scope are not repeated in the message: they may be anything, of any length.
create or replace function idem_private.check_key(
    scope text, key text, min_length int, max_length int, pattern text
) returns void
language plpgsql stable as $$
declare
    argument text := 'key';
    problem text;
    max_scope constant int := 255;
    -- of a key of a permissive pattern, so that it fits into the index
    max_bytes constant int := 1024;
    control_characters constant text := '[\x01-\x1f\x7f-\x9f]';
begin
    problem := case
        when check_key.scope is null then 'null'
        when check_key.scope = '' then 'empty'
        when length(check_key.scope) > max_scope then 'too_long'
        when check_key.scope collate "C" ~ '^\s+$' then 'blank'
        when check_key.scope collate "C" ~ control_characters then 'not_printable'
    end;
    if problem is not null then
        argument := 'scope';
    else
        problem := case
            when check_key.key is null then 'null'
            when check_key.key = '' then 'empty'
            when length(check_key.key) > check_key.max_length then 'too_long'
            when octet_length(check_key.key) > max_bytes then 'too_many_bytes'
            when check_key.key collate "C" ~ '^\s+$' then 'blank'
            when check_key.key collate "C" ~ control_characters then 'not_printable'
            when check_key.pattern is null and check_key.key collate "C" !~ '^[ -~]*$' then 'not_printable'
            when check_key.key collate "C" ~ '^\s*".*"\s*$' then 'quoted'
            when length(check_key.key) < check_key.min_length then 'too_short'
            when check_key.pattern is not null and check_key.key collate "C" !~ check_key.pattern then 'pattern'
        end;
    end if;
    if problem is null then
        return;
    end if;
    raise exception using
        errcode = 'IK001',
        message = format(
            'the %s %s',
            argument,
            case problem
                when 'null' then 'is null'
                when 'empty' then 'is empty'
                when 'blank' then 'is blank'
                when 'quoted' then 'is quoted'
                when 'too_long' then 'is too long'
                when 'too_many_bytes' then 'has too many bytes'
                when 'too_short' then 'is too short'
                when 'pattern' then 'does not match the pattern of its policy'
                else 'has characters that are not printable'
            end
        ),
        detail = jsonb_strip_nulls(jsonb_build_object(
            'code', problem,
            'argument', argument,
            'limit', case
                when problem = 'too_long' and argument = 'scope' then max_scope
                when problem = 'too_long' then check_key.max_length
                when problem = 'too_many_bytes' then max_bytes
                when problem = 'too_short' then check_key.min_length
            end
        ))::text,
        hint = case
            when problem = 'quoted' then 'Take the quotes off: this looks like the value of an Idempotency-Key header.'
            when argument = 'scope' then 'A scope is 1 to 255 characters, any but control characters.'
            else 'By default a key is 1 to 255 characters of printable ASCII; its policy sets length and pattern.'
        end;
end
$$;

comment on function idem_private.check_key(text, text, int, int, text) is
'Raises IK001 unless scope and key are acceptable; lengths count characters.';

revoke all on function idem_private.check_key(text, text, int, int, text) from public;

-- sql/private/check_call.sql
create or replace function idem_private.check_call(scope text, key text, policy text) returns void
language plpgsql stable as $$
#variable_conflict use_column
declare
    settings idem_private.policy;
begin
    select p.* into settings
    from idem_private.policy as p
    where p.name = coalesce(check_call.policy, 'default') collate "C";
    if not found then
        raise exception using
            errcode = 'IK006',
            message = format('there is no policy %L', left(check_call.policy, 100)),
            detail = jsonb_build_object('code', 'no_such_policy', 'policy', left(check_call.policy, 100))::text,
            hint = 'The view idem.policies lists the policies; insert a row there to add one.';
    end if;
    perform idem_private.check_key(
        check_call.scope, check_call.key, settings.key_min_length, settings.key_max_length, settings.key_pattern
    );
end
$$;

comment on function idem_private.check_call(text, text, text) is
'Raises IK006 for an unknown policy, IK001 for a scope or key that is not acceptable under it.';

revoke all on function idem_private.check_call(text, text, text) from public;

-- sql/private/check_fields.sql
create or replace function idem_private.check_fields(fields jsonb) returns void
language plpgsql immutable as $$
declare
    max_fields constant int := 1000;
begin
    if jsonb_typeof(check_fields.fields) <> 'object' then
        raise exception using
            errcode = '22023',
            message = 'fields must be a JSON object',
            detail = jsonb_build_object('code', 'fields_not_an_object', 'argument', 'fields')::text,
            hint = 'It maps the name of each part of the request to a short hash of its value.';
    -- of a body; what http_reserve adds of the request does not count
    elsif (
        select count(*) from jsonb_object_keys(check_fields.fields) as f (name)
        where f.name not in ('method', 'path', 'content_type')
    ) > max_fields then
        raise exception using
            errcode = 'IK007',
            message = 'too many fields',
            detail = jsonb_build_object('code', 'too_many_fields', 'argument', 'fields', 'limit', max_fields)::text,
            hint = 'Leave fields out: the fingerprint alone decides, fields only name what differs.';
    end if;
end
$$;

comment on function idem_private.check_fields(jsonb) is 'Raises unless fields is an object of at most 1000 members.';

revoke all on function idem_private.check_fields(jsonb) from public;

-- sql/private/headers_are_pairs.sql
create or replace function idem_private.headers_are_pairs(headers jsonb) returns boolean
language sql immutable as $$
    select jsonb_typeof(headers) = 'array' and not jsonb_path_exists(
        headers,
        'strict $[*] ? (
            !(@.type() == "array") || !(@.size() == 2) || !(@[0].type() == "string") || !(@[1].type() == "string")
        )'
    )
$$;

comment on function idem_private.headers_are_pairs(jsonb) is
'Whether headers are an array of [name, value] pairs of strings; null is not.';

revoke all on function idem_private.headers_are_pairs(jsonb) from public;

-- sql/private/refuse_headers.sql
create or replace function idem_private.refuse_headers() returns void
language plpgsql stable as $$
begin
    raise exception using
        errcode = '22023',
        message = 'headers must be a JSON array of [name, value] pairs of strings',
        detail = jsonb_build_object('code', 'headers_not_pairs', 'argument', 'headers')::text,
        hint = 'For example [["content-type", "application/json"]]: order and repeats are kept.';
end
$$;

comment on function idem_private.refuse_headers() is 'Raises 22023.';

revoke all on function idem_private.refuse_headers() from public;

-- sql/private/keyed_hash.sql
-- A secret prefix, and half of the hash thrown away: what is left cannot be extended to the hash of a longer message.
create or replace function idem_private.keyed_hash(secret bytea, message bytea) returns bytea
language sql immutable as $$
    select substr(sha256(secret || message), 1, 16)
$$;

comment on function idem_private.keyed_hash(bytea, bytea) is
'128 bits that only the holder of idem_private.secret can compute for a message.';

revoke all on function idem_private.keyed_hash(bytea, bytea) from public;

-- sql/private/derive_key.sql
-- A version 8 UUID (RFC 9562): the bytes that hold version and variant are fixed, the other 112 bits are the hash. The
-- lengths keep ('a', 'bc') and ('ab', 'c') apart.
create or replace function idem_private.derive_key(secret bytea, scope text, key text, step text) returns uuid
language sql stable as $$
    select encode(
        overlay(
            overlay(
                idem_private.keyed_hash(
                    secret, int4send(length(scope)) || int4send(length(key)) || convert_to(scope || key || step, 'UTF8')
                )
                placing '\x80'::bytea from 7
            )
            placing '\x80'::bytea from 9
        ),
        'hex'
    )::uuid
$$;

comment on function idem_private.derive_key(bytea, text, text, text) is
'The key under which (scope, key, step) is passed on to the next system.';

revoke all on function idem_private.derive_key(bytea, text, text, text) from public;

-- sql/private/lock_id.sql
-- The hash of the scope seeds that of the key, so that no two pairs are the same text. 64 bits: a collision is a matter
-- of billions of keys in flight, and then costs a passing in_progress only.
create or replace function idem_private.lock_id(scope text, key text) returns bigint
language sql immutable as $$
    select hashtextextended(key collate "C", hashtextextended(scope collate "C", 7235997118563091))
$$;

comment on function idem_private.lock_id(text, text) is
'Transaction-level advisory lock of a key that is being inserted.';

revoke all on function idem_private.lock_id(text, text) from public;

-- sql/private/owned_here.sql
-- The id alone may belong to a transaction of the server that this database was restored from.
create or replace function idem_private.owned_here(owner_xid xid8, owned_at timestamptz) returns boolean
language sql stable as $$
    select coalesce(owner_xid = pg_current_xact_id_if_assigned() and owned_at >= transaction_timestamp(), false)
$$;

comment on function idem_private.owned_here(xid8, timestamptz) is
'Whether the present transaction took the row by reserve or takeover.';

revoke all on function idem_private.owned_here(xid8, timestamptz) from public;

-- sql/private/real_expiry.sql
-- A tombstone has no answer left, and expires_at -infinity: no clock that goes back and no min_retention that grows
-- makes it a completed key again.
create or replace function idem_private.real_expiry(
    expires_at timestamptz, completed_at timestamptz, min_retention interval
) returns timestamptz
language sql stable as $$
    select case when expires_at > '-infinity' then greatest(expires_at, completed_at + min_retention) else expires_at end
$$;

comment on function idem_private.real_expiry(timestamptz, timestamptz, interval) is
'When a finished key expires: completion leaves it at least min_retention.';

revoke all on function idem_private.real_expiry(timestamptz, timestamptz, interval) from public;

-- sql/private/finished_phase.sql
create or replace function idem_private.finished_phase(
    expires_at timestamptz,
    completed_at timestamptz,
    expired_at timestamptz,
    min_retention interval,
    tombstone interval,
    at timestamptz
) returns text
language sql stable as $$
    select
        case
            when at < idem_private.real_expiry(expires_at, completed_at, min_retention) then 'completed'
            when at < coalesce(expired_at, idem_private.real_expiry(expires_at, completed_at, min_retention)) + tombstone
                then 'expired'
            else 'absent'
        end
$$;

comment on function idem_private.finished_phase(
    timestamptz, timestamptz, timestamptz, interval, interval, timestamptz
) is 'The state of a finished row at a time: completed, expired or absent.';

revoke all on function idem_private.finished_phase(
    timestamptz, timestamptz, timestamptz, interval, interval, timestamptz
) from public;

-- sql/private/phase.sql
-- An unfinished atomic row that another transaction left behind (it could not be checked at commit, or it was
-- restored) has no lease: its outcome is as unknown as that of a lapsed one.
create or replace function idem_private.phase(
    row_ idem_private.reservation, min_retention interval, tombstone interval, at timestamptz
) returns text
language sql stable as $$
    select
        case
            when row_.completed_at is not null then
                idem_private.finished_phase(
                    row_.expires_at, row_.completed_at, row_.expired_at, min_retention, tombstone, at
                )
            when row_.released_at is not null then 'released'
            when row_.leased and row_.lease_until > at then 'in_progress'
            when not row_.leased and idem_private.owned_here(row_.owner_xid, row_.owned_at) then 'in_progress'
            else 'lapsed'
        end
$$;

comment on function idem_private.phase(idem_private.reservation, interval, interval, timestamptz) is
'The state of a stored row at a time: absent, in_progress, lapsed, released, completed or expired.';

revoke all on function idem_private.phase(idem_private.reservation, interval, interval, timestamptz) from public;

-- sql/private/reader.sql
create or replace function idem_private.reader(out at timestamptz, out prefixes text[])
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select idem_private.clock(), idem_private.bound_prefixes()
$$;

comment on function idem_private.reader() is
'For readers of idem.keys: the time, and the prefixes of the scopes that they may see.';

revoke all on function idem_private.reader() from public;

-- sql/private/is_lapsed.sql
create or replace function idem_private.is_lapsed(row_ idem_private.reservation, at timestamptz) returns boolean
language sql stable as $$
    select idem_private.phase(row_, interval '0', interval '0', at) = 'lapsed'
$$;

comment on function idem_private.is_lapsed(idem_private.reservation, timestamptz) is
'Whether the outcome of a row is unknown at a time; retention does not matter to that.';

revoke all on function idem_private.is_lapsed(idem_private.reservation, timestamptz) from public;

-- sql/private/lapsed_at.sql
create or replace function idem_private.lapsed_at(row_ idem_private.reservation) returns timestamptz
language sql immutable as $$
    select case when row_.leased then row_.lease_until else greatest(row_.created_at, row_.owned_at) end
$$;

comment on function idem_private.lapsed_at(idem_private.reservation) is
'When a lapsed row lapsed: at the end of its lease. An atomic one never had any, and was left behind as it was taken.';

revoke all on function idem_private.lapsed_at(idem_private.reservation) from public;

-- sql/private/policy_of.sql
create or replace function idem_private.policy_of(name text) returns idem_private.policy
language plpgsql stable as $$
declare
    settings idem_private.policy;
begin
    select p.* into settings from idem_private.policy as p where p.name = policy_of.name collate "C";
    if not found then
        select p.* into settings from idem_private.retired_policy as p where p.name = policy_of.name collate "C";
    end if;
    return settings;
end
$$;

comment on function idem_private.policy_of(text) is 'The settings of a stored row, also of a policy deleted since.';

revoke all on function idem_private.policy_of(text) from public;

-- sql/private/retry_after.sql
create or replace function idem_private.retry_after(policy_wait interval, lease_left interval) returns interval
language sql immutable as $$
    select make_interval(
        secs => greatest(
            1,
            ceil(extract(epoch from least(policy_wait, case when lease_left > interval '0' then lease_left end)))
        )::double precision
    )
$$;

comment on function idem_private.retry_after(interval, interval) is
'The least of the policy''s wait and the lease left, in whole seconds, at least one.';

revoke all on function idem_private.retry_after(interval, interval) from public;

-- sql/private/mismatched_fields.sql
-- Where one side says no more than that there was a body, not all names of parts on the other side would differ.
create or replace function idem_private.mismatched_fields(stored jsonb, given jsonb) returns text[]
language sql immutable as $$
    select coalesce(array_agg(coalesce(s.key, g.key) order by coalesce(s.key, g.key) collate "C"), '{}')
    from jsonb_each(stored) as s
    full join jsonb_each(given) as g on s.key = g.key
    where stored is not null and given is not null and s.value is distinct from g.value
        and not ((stored ? 'body') <> (given ? 'body') and coalesce(s.key, g.key) ~ '^(/|$)')
$$;

comment on function idem_private.mismatched_fields(jsonb, jsonb) is
'Names of the parts that were added, removed or changed; never their values.';

revoke all on function idem_private.mismatched_fields(jsonb, jsonb) from public;

-- sql/private/answer.sql
create or replace function idem_private.answer(
    outcome text,
    row_ idem_private.reservation,
    min_retention interval,
    policy_wait interval,
    fields jsonb,
    at timestamptz
) returns idem.reservation
language plpgsql stable as $$
begin
    if answer.outcome = 'replay' then
        return row(
            'replay', null, row_.attempt, null, null, null, row_.status, row_.headers, row_.body, null, null,
            row_.created_at, null, row_.completed_at,
            idem_private.real_expiry(row_.expires_at, row_.completed_at, answer.min_retention)
        )::idem.reservation;
    end if;
    return row(
        answer.outcome, null, row_.attempt, null, null, null, null, null, null,
        case
            when answer.outcome = 'mismatch' and row_.fields is not null and answer.fields is not null
                then idem_private.mismatched_fields(row_.fields, answer.fields)
        end,
        case
            when answer.outcome in ('in_progress', 'unresolved')
                then idem_private.retry_after(answer.policy_wait, row_.lease_until - answer.at)
        end,
        row_.created_at,
        case when answer.outcome in ('in_progress', 'unresolved') then row_.lease_until end,
        case when answer.outcome = 'expired' then row_.completed_at end,
        case
            when answer.outcome <> 'mismatch'
                then coalesce(
                    row_.expired_at,
                    idem_private.real_expiry(row_.expires_at, row_.completed_at, answer.min_retention)
                )
        end
    )::idem.reservation;
end
$$;

comment on function idem_private.answer(
    text, idem_private.reservation, interval, interval, jsonb, timestamptz
) is 'What reserve tells anybody but the owner of a row.';

revoke all on function idem_private.answer(
    text, idem_private.reservation, interval, interval, jsonb, timestamptz
) from public;

-- sql/private/busy.sql
create or replace function idem_private.busy(policy_wait interval) returns idem.reservation
language sql immutable as $$
    select row(
        'in_progress', null, null, null, null, null, null, null, null, null,
        idem_private.retry_after(policy_wait, null), null, null, null, null
    )::idem.reservation
$$;

comment on function idem_private.busy(interval) is
'The answer where another attempt is at work on a row that cannot be read yet.';

revoke all on function idem_private.busy(interval) from public;

-- sql/private/begin_leased.sql
-- A leased reservation must commit before the outside effect happens, so its transaction may hold nothing else that
-- a caller could want to roll back. A transaction without an id has written nothing. Where it has one, every write
-- must have been by reserve itself: reserve writes the key's row in idem_private.unfinished last, so if the command
-- that writes it again is the very next one, nobody wrote in between. Command ids count on through a rolled-back
-- savepoint, whose writes are found so too. Which row that was is kept in a setting local to the transaction, which a
-- rolled-back savepoint takes back as well.
create or replace function idem_private.begin_leased() returns void
language plpgsql volatile as $$
#variable_conflict use_column
declare
    previous jsonb;
    command_before bigint;
    command_now bigint;
begin
    perform idem_private.commit_durably();
    if pg_current_xact_id_if_assigned() is null or idem_private.single_transaction() then
        return;
    end if;

    previous := nullif(current_setting('idem_private.last_leased', true), '')::jsonb;
    if previous is not null then
        -- Anybody can set it: it must not lead to another's key.
        perform idem_private.check_scope(previous ->> 0);
        select u.cmin::text::bigint into command_before
        from idem_private.unfinished as u
        where u.scope = previous ->> 0 and u.key = previous ->> 1;
        update idem_private.unfinished as u set claims = u.claims
        where u.scope = previous ->> 0 and u.key = previous ->> 1;
        select u.cmin::text::bigint into command_now
        from idem_private.unfinished as u
        where u.scope = previous ->> 0 and u.key = previous ->> 1;
    end if;
    if command_now = command_before + 1 then
        return;
    end if;

    raise exception using
        errcode = 'IK004',
        message = 'a leased reservation must commit by itself, and this transaction has already written something',
        detail = jsonb_build_object('code', 'transaction_has_written', 'mode', 'leased')::text,
        hint = 'Reserve in a transaction of its own and commit it before the work; or use mode atomic.';
end
$$;

comment on function idem_private.begin_leased() is
'Raises IK004 where the transaction has written anything but leased reservations, and makes its commit durable.';

revoke all on function idem_private.begin_leased() from public;

-- sql/private/note_leased.sql
create or replace function idem_private.note_leased(scope text, key text, renewed boolean) returns void
language plpgsql volatile as $$
#variable_conflict use_column
begin
    insert into idem_private.unfinished as u (scope, key)
    values (note_leased.scope, note_leased.key)
    on conflict (scope, key) do update set
        claims = case when note_leased.renewed then u.claims else 0 end,
        claim_after = case when note_leased.renewed then u.claim_after end,
        reason = case when note_leased.renewed then u.reason end;
    perform set_config(
        'idem_private.last_leased', jsonb_build_array(note_leased.scope, note_leased.key)::text, true
    );
end
$$;

comment on function idem_private.note_leased(text, text, boolean) is
'Lists a key as unfinished: the last write of a leased reserve (see idem_private.begin_leased).';

revoke all on function idem_private.note_leased(text, text, boolean) from public;

-- sql/private/note_unchanged.sql
-- Where a leased reserve tries to lock a row and then starts nothing, that counts as a command, and a lock gives the
-- transaction an id: to idem_private.begin_leased it would look like somebody's write. So what the transaction listed
-- last is written again, or else the key itself, whose row it then holds. Nobody waits for either.
create or replace function idem_private.note_unchanged(scope text, key text, held boolean) returns void
language plpgsql volatile as $$
#variable_conflict use_column
declare
    previous jsonb := nullif(current_setting('idem_private.last_leased', true), '')::jsonb;
begin
    if previous is null and note_unchanged.held then
        previous := jsonb_build_array(note_unchanged.scope, note_unchanged.key);
        perform set_config('idem_private.last_leased', previous::text, true);
    end if;
    -- Anybody can set it: it must not lead to another's key.
    perform idem_private.check_scope(previous ->> 0);
    update idem_private.unfinished as u set claims = u.claims
    where u.scope = previous ->> 0 and u.key = previous ->> 1;
end
$$;

comment on function idem_private.note_unchanged(text, text, boolean) is
'The last write of a leased reserve that has locked a row, or tried to, and started nothing (see idem_private.begin_leased).';

revoke all on function idem_private.note_unchanged(text, text, boolean) from public;

-- sql/private/require_completion.sql
-- Runs at commit (and at PREPARE TRANSACTION) for every row that a reserve inserted or took over, and reads the row as
-- it is then: a completion inside a savepoint that was rolled back does not count. A row that is gone, or that has
-- another token by now, is somebody else's event.
--
-- Where the session has said SET CONSTRAINTS ALL IMMEDIATE it runs within reserve, too early. A row as young as the
-- client's statement may be such a one: it is put off, once, by writing it again with the check deferred. That costs
-- nothing where it is not needed, as SET CONSTRAINTS in every reserve would. Where the transaction ends with that very
-- statement, the second check follows at once.
create or replace function idem_private.require_completion() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    -- What idem.complete has left; a savepoint that is rolled back takes it back. It saves the look.
    if current_setting('idem_private.completed', true) = new.token || new.scope || e'\n' || new.key then
        return null;
    end if;
    perform from idem_private.reservation as r
    where r.scope = new.scope and r.key = new.key and r.token = new.token
        and r.completed_at is null and not r.leased;
    if not found then
        return null;
    end if;

    if new.owned_at >= statement_timestamp() and not new.put_off then
        set constraints idem_private.reservation_completed deferred;
        update idem_private.reservation as r
        set token = r.token, put_off = true
        where r.scope = new.scope and r.key = new.key;
        return null;
    end if;
    raise exception using
        errcode = 'IK005',
        message = 'an atomic reservation was not completed in its transaction, which is rolled back',
        detail = jsonb_build_object('code', 'not_completed', 'scope', new.scope, 'key', new.key)::text,
        hint = 'Call idem.complete before COMMIT, or roll back to free the key.';
end
$$;

comment on function idem_private.require_completion() is 'Raises IK005 at commit for an unfinished atomic reservation.';

revoke all on function idem_private.require_completion() from public;

create constraint trigger reservation_completed
after insert or update of token on idem_private.reservation
deferrable initially deferred
for each row when (new.must_complete)
execute function idem_private.require_completion();

-- sql/private/note_left_behind.sql
-- The counterpart of idem_private.require_completion: its trigger fires only where that one does not, in the replica
-- role. So an atomic reservation that is committed unfinished is listed for resolvers, and no other pays for it.
create or replace function idem_private.note_left_behind() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    insert into idem_private.unfinished (scope, key)
    select r.scope, r.key
    from idem_private.reservation as r
    where r.scope = new.scope and r.key = new.key and r.token = new.token
        and r.completed_at is null and not r.leased
    on conflict do nothing;
    return null;
end
$$;

comment on function idem_private.note_left_behind() is
'Lists an unfinished atomic reservation at commit where the check of IK005 does not run.';

revoke all on function idem_private.note_left_behind() from public;

create constraint trigger reservation_left_behind
after insert or update of token on idem_private.reservation
deferrable initially deferred
for each row when (not new.leased and new.completed_at is null)
execute function idem_private.note_left_behind();

alter table idem_private.reservation enable replica trigger reservation_left_behind;

-- sql/private/judge.sql
-- The one place that decides what an existing row means to an attempt, in every state, before and after it is locked.
-- 'take' and 'renew' say what reserve may do once it holds the row. The fingerprint comes first: whatever the state,
-- another request learns nothing but that it is another.
create or replace function idem_private.judge(
    row_ idem_private.reservation,
    settings idem_private.policy,
    fingerprint bytea,
    token uuid,
    at timestamptz
) returns text
language sql stable as $$
    select
        case
            when row_.fingerprint is distinct from fingerprint
                and idem_private.phase(row_, settings.min_retention, settings.tombstone, at) <> 'absent' then 'mismatch'
            else
                case idem_private.phase(row_, settings.min_retention, settings.tombstone, at)
                    when 'completed' then 'replay'
                    when 'expired' then 'expired'
                    when 'in_progress' then case when row_.token = token then 'renew' else 'in_progress' end
                    when 'lapsed' then
                        case
                            when not row_.leased then 'unresolved'
                            when row_.token = token then 'renew'
                            when settings.on_lapse = 'retry'
                                and row_.attempt < coalesce(settings.max_attempts, 2147483647) then 'take'
                            else 'unresolved'
                        end
                    else 'take'
                end
        end
$$;

comment on function idem_private.judge(
    idem_private.reservation, idem_private.policy, bytea, uuid, timestamptz
) is 'Outcome of reserve for an existing row, or take or renew where the caller may have it.';

revoke all on function idem_private.judge(
    idem_private.reservation, idem_private.policy, bytea, uuid, timestamptz
) from public;

-- sql/private/renew_lease.sql
create or replace function idem_private.renew_lease(
    held idem_private.reservation, lease interval
) returns idem_private.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    at constant timestamptz := idem_private.clock();
    renewed idem_private.reservation;
begin
    update idem_private.reservation as r
    set lease_until = at + coalesce(renew_lease.lease, r.lease)
    where r.scope = held.scope and r.key = held.key
    returning r.* into renewed;
    return renewed;
end
$$;

comment on function idem_private.renew_lease(idem_private.reservation, interval) is
'Moves the end of the lease of a row that the caller holds locked; null is the length it was reserved with.';

revoke all on function idem_private.renew_lease(idem_private.reservation, interval) from public;

-- sql/private/record_event.sql
create or replace function idem_private.record_event(
    held idem_private.reservation, event text, at timestamptz, reason text, detail jsonb
) returns void
language sql volatile as $$
    insert into idem_private.event (scope, key, life, at, event, attempt, by_role, reason, detail)
    values (
        held.scope, held.key, held.created_at, record_event.at, record_event.event, held.attempt,
        idem_private.caller(), record_event.reason,
        nullif(
            jsonb_strip_nulls(
                coalesce(record_event.detail, '{}')
                || jsonb_build_object('session_user', nullif(session_user::text, idem_private.caller()::text))
            ),
            '{}'
        )
    )
$$;

comment on function idem_private.record_event(idem_private.reservation, text, timestamptz, text, jsonb) is
'Notes what the caller did to the row of a key that it holds locked; session_user is named where SET ROLE hides it.';

revoke all on function idem_private.record_event(
    idem_private.reservation, text, timestamptz, text, jsonb
) from public;

-- sql/private/record_lapse.sql
-- Nobody is there when a lease ends, so whoever acts on the lapsed row writes it down. An owner that gave up has done
-- so itself.
create or replace function idem_private.record_lapse(held idem_private.reservation) returns void
language sql volatile as $$
    insert into idem_private.event (scope, key, life, at, event, attempt)
    select held.scope, held.key, held.created_at, idem_private.lapsed_at(held), 'lapsed', held.attempt
    where not exists (
        select from idem_private.event as e
        where e.scope = held.scope and e.key = held.key and e.life = held.created_at
            and e.event in ('lapsed', 'deferred') and e.at >= idem_private.lapsed_at(held)
    )
$$;

comment on function idem_private.record_lapse(idem_private.reservation) is
'Notes when the row of a lapsed key that the caller holds locked lapsed, unless that has been noted.';

revoke all on function idem_private.record_lapse(idem_private.reservation) from public;

-- sql/private/take_over.sql
-- A new owner, the same life: fingerprint, fields, policy and what the last owner left of its state stay.
create or replace function idem_private.take_over(
    held idem_private.reservation, leased boolean, lease interval, state jsonb, token uuid
) returns idem_private.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    at constant timestamptz := idem_private.clock();
    taken_at constant timestamptz := clock_timestamp();
    taken_by constant xid8 := pg_current_xact_id();
    taken idem_private.reservation;
begin
    update idem_private.reservation as r
    set
        owned_at = taken_at,
        owner_xid = taken_by,
        token = take_over.token,
        attempt = r.attempt + 1,
        leased = take_over.leased,
        must_complete = not take_over.leased,
        put_off = false,
        lease = take_over.lease,
        lease_until = at + take_over.lease,
        state = coalesce(r.state, take_over.state),
        released_at = null
    where r.scope = held.scope and r.key = held.key
    returning r.* into taken;

    if held.released_at is null then
        perform idem_private.record_lapse(held);
    end if;
    perform idem_private.record_event(
        taken, case when held.released_at is null then 'taken_over' else 'reserved' end, at, null,
        jsonb_build_object('mode', case when taken.leased then 'leased' else 'atomic' end)
    );
    return taken;
end
$$;

comment on function idem_private.take_over(idem_private.reservation, boolean, interval, jsonb, uuid) is
'The next attempt at a lapsed or released row that the caller holds locked.';

revoke all on function idem_private.take_over(
    idem_private.reservation, boolean, interval, jsonb, uuid
) from public;

-- sql/private/replace_expired.sql
-- In place rather than delete and insert: the key never disappears from the index, so that nobody can insert it.
create or replace function idem_private.replace_expired(
    held idem_private.reservation,
    fingerprint bytea,
    fields jsonb,
    policy text,
    ttl interval,
    leased boolean,
    lease interval,
    state jsonb,
    token uuid,
    completed_at timestamptz
) returns idem_private.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    at constant timestamptz := coalesce(replace_expired.completed_at, idem_private.clock());
    taken_at constant timestamptz := clock_timestamp();
    taken_by constant xid8 := pg_current_xact_id();
    taken idem_private.reservation;
begin
    update idem_private.reservation as r
    set
        fingerprint = replace_expired.fingerprint,
        fields = replace_expired.fields,
        policy = replace_expired.policy,
        created_at = at,
        expires_at = at + replace_expired.ttl,
        expired_at = null,
        purge_at = null,
        owned_at = taken_at,
        owner_xid = taken_by,
        token = replace_expired.token,
        attempt = 1,
        leased = replace_expired.leased,
        must_complete = not replace_expired.leased and replace_expired.completed_at is null,
        put_off = false,
        lease = replace_expired.lease,
        lease_until = at + replace_expired.lease,
        recovery_point = null,
        state = replace_expired.state,
        released_at = null,
        completed_at = replace_expired.completed_at,
        status = null,
        headers = null,
        body = null
    where r.scope = held.scope and r.key = held.key
    returning r.* into taken;
    return taken;
end
$$;

comment on function idem_private.replace_expired(
    idem_private.reservation, bytea, jsonb, text, interval, boolean, interval, jsonb, uuid, timestamptz
) is 'A new life of a key whose expired row the caller holds locked; finished already where it is a mark.';

revoke all on function idem_private.replace_expired(
    idem_private.reservation, bytea, jsonb, text, interval, boolean, interval, jsonb, uuid, timestamptz
) from public;

-- sql/private/started.sql
create or replace function idem_private.started(owned idem_private.reservation) returns idem.reservation
language plpgsql stable as $$
declare
    answer idem.reservation;
begin
    answer.outcome := 'started';
    answer.token := owned.token;
    answer.attempt := owned.attempt;
    answer.downstream_key := idem.downstream_key(owned.scope, owned.key);
    answer.recovery_point := owned.recovery_point;
    answer.state := owned.state;
    answer.created_at := owned.created_at;
    answer.lease_until := owned.lease_until;
    answer.expires_at := owned.expires_at;
    return answer;
end
$$;

comment on function idem_private.started(idem_private.reservation) is 'What reserve tells the owner of a row.';

revoke all on function idem_private.started(idem_private.reservation) from public;

-- sql/private/reserve_existing.sql
-- An attempt at a key whose row was seen a moment ago. Null: the row has gone, look again.
--
-- What needs no write is answered from a plain read. A write first takes the row lock, without waiting: who holds it
-- may be its owner completing, another attempt taking over, or purge; then the row is read once more, and if it still
-- cannot be answered from a read, somebody is at work on it. With the lock the newest version is judged again, since
-- the one read before may be gone. (Under REPEATABLE READ the lock of a row changed since raises 40001.)
create or replace function idem_private.reserve_existing(
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
language plpgsql volatile as $$
#variable_conflict use_column
declare
    found_row idem_private.reservation;
    settings idem_private.policy;
    at timestamptz;
    verdict text;
    held boolean := false;
begin
    select r.* into found_row
    from idem_private.reservation as r
    where r.scope = reserve_existing.scope collate "C" and r.key = reserve_existing.key collate "C";
    if not found then
        return null;
    end if;
    settings := idem_private.policy_of(found_row.policy);
    at := idem_private.clock();
    verdict := idem_private.judge(found_row, settings, reserve_existing.fingerprint, reserve_existing.token, at);

    if verdict in ('take', 'renew')
        -- A snapshot older than this moment could show a lapse that a heartbeat has ended: the lock tells.
        or (verdict = 'unresolved' and current_setting('transaction_isolation') <> 'read committed') then
        select r.* into found_row
        from idem_private.reservation as r
        where r.scope = reserve_existing.scope collate "C" and r.key = reserve_existing.key collate "C"
        for update skip locked;
        held := found;
        if not held then
            select r.* into found_row
            from idem_private.reservation as r
            where r.scope = reserve_existing.scope collate "C" and r.key = reserve_existing.key collate "C";
            if not found then
                return null;
            end if;
        end if;
        settings := idem_private.policy_of(found_row.policy);
        at := idem_private.clock();
        verdict := idem_private.judge(found_row, settings, reserve_existing.fingerprint, reserve_existing.token, at);
        if reserve_existing.leased and not (held and verdict in ('take', 'renew')) then
            perform idem_private.note_unchanged(reserve_existing.scope, reserve_existing.key, held);
        end if;
        if verdict in ('take', 'renew') and not held then
            return idem_private.busy(settings.retry_after);
        end if;
    end if;
    if verdict not in ('take', 'renew') then
        return idem_private.answer(
            verdict, found_row, settings.min_retention, settings.retry_after, reserve_existing.fields, at
        );
    end if;

    if verdict = 'renew' then
        if found_row.leased <> reserve_existing.leased then
            raise exception using
                errcode = 'IK004',
                message = 'this token owns the reservation in the other mode',
                detail = jsonb_build_object(
                    'code', 'other_mode', 'mode', case when found_row.leased then 'leased' else 'atomic' end
                )::text,
                hint = 'Repeat reserve with the mode of the first call.';
        end if;
        if found_row.leased then
            found_row := idem_private.renew_lease(found_row, reserve_existing.lease);
        end if;
    elsif found_row.completed_at is null then
        found_row := idem_private.take_over(
            found_row,
            reserve_existing.leased,
            case when reserve_existing.leased then coalesce(reserve_existing.lease, settings.lease) end,
            reserve_existing.state,
            reserve_existing.token
        );
    else
        found_row := idem_private.replace_expired(
            found_row,
            reserve_existing.fingerprint,
            reserve_existing.fields,
            reserve_existing.policy,
            reserve_existing.ttl,
            reserve_existing.leased,
            case when reserve_existing.leased
                then coalesce(reserve_existing.lease, reserve_existing.default_lease)
            end,
            reserve_existing.state,
            reserve_existing.token,
            null
        );
    end if;
    if found_row.leased then
        perform idem_private.note_leased(found_row.scope, found_row.key, verdict = 'renew');
    else
        delete from idem_private.unfinished as u where u.scope = found_row.scope and u.key = found_row.key;
    end if;
    return idem_private.started(found_row);
end
$$;

comment on function idem_private.reserve_existing(
    text, text, bytea, jsonb, text, interval, boolean, interval, interval, jsonb, uuid
) is 'Outcome of reserve for a key that has a row, or null if the row has gone meanwhile.';

revoke all on function idem_private.reserve_existing(
    text, text, bytea, jsonb, text, interval, boolean, interval, interval, jsonb, uuid
) from public;

-- sql/private/mark_existing.sql
-- What idem.once makes of a key that has a row. Only an expired one is written, under its lock and judged again.
create or replace function idem_private.mark_existing(scope text, key text, policy text, ttl interval) returns text
language plpgsql volatile as $$
#variable_conflict use_column
declare
    found_row idem_private.reservation;
    settings idem_private.policy;
    at timestamptz;
    phase text;
begin
    select r.* into found_row
    from idem_private.reservation as r
    where r.scope = mark_existing.scope collate "C" and r.key = mark_existing.key collate "C";
    settings := idem_private.policy_of(found_row.policy);
    at := idem_private.clock();
    phase := idem_private.phase(found_row, settings.min_retention, settings.tombstone, at);
    if phase = 'absent' then
        select r.* into found_row
        from idem_private.reservation as r
        where r.scope = mark_existing.scope collate "C" and r.key = mark_existing.key collate "C"
        for update skip locked;
        if not found then
            return 'in_progress';
        end if;
        settings := idem_private.policy_of(found_row.policy);
        at := idem_private.clock();
        phase := idem_private.phase(found_row, settings.min_retention, settings.tombstone, at);
    end if;

    if phase in ('completed', 'expired') then
        return 'duplicate';
    elsif phase <> 'absent' then
        return 'in_progress';
    end if;
    perform idem_private.replace_expired(
        found_row, null, null, mark_existing.policy, mark_existing.ttl, false, null, null,
        null, at
    );
    return 'first';
end
$$;

comment on function idem_private.mark_existing(text, text, text, interval) is
'Outcome of once for a key that has a row: first where it has expired, duplicate, or in_progress.';

revoke all on function idem_private.mark_existing(text, text, text, interval) from public;

-- sql/private/require_fresh_snapshot.sql
-- A snapshot older than the row does not show it, and no read could tell that from no row. An insert can: it meets the
-- row in the index and raises 40001. Where another transaction is changing that row the insert would wait for it, only
-- to raise the same: so it is tried with no patience, and taken back. It holds the lock of the key, as every insert
-- does.
create or replace function idem_private.require_fresh_snapshot(scope text, key text) returns void
language plpgsql volatile as $$
begin
    if current_setting('transaction_isolation') = 'read committed'
        or not pg_try_advisory_xact_lock(
            idem_private.lock_id(require_fresh_snapshot.scope, require_fresh_snapshot.key)
        ) then
        return;
    end if;
    begin
        perform set_config('lock_timeout', '1ms', true);
        insert into idem_private.reservation (
            scope, key, policy, created_at, expires_at, owned_at, token, attempt, leased
        ) values (
            require_fresh_snapshot.scope, require_fresh_snapshot.key, 'default', now(), now(), now(),
            gen_random_uuid(), 1, true
        )
        on conflict do nothing;
        -- There is no such row: take the insert back.
        raise sqlstate 'IK000';
    exception
        when sqlstate 'IK000' then
            return;
        when lock_not_available then
            raise exception using
                errcode = '40001',
                message = 'another transaction is changing a key that was committed after the snapshot',
                detail = jsonb_build_object('code', 'old_snapshot')::text,
                hint = 'Run the transaction again.';
    end;
end
$$;

comment on function idem_private.require_fresh_snapshot(text, text) is
'Raises 40001 where a key that is not to be seen was committed after the snapshot. Waits for nobody.';

revoke all on function idem_private.require_fresh_snapshot(text, text) from public;

-- sql/private/refuse_absent.sql
create or replace function idem_private.refuse_absent(scope text, key text) returns void
language plpgsql volatile as $$
begin
    perform idem_private.require_fresh_snapshot(refuse_absent.scope, refuse_absent.key);
    raise exception using
        errcode = 'IK003',
        message = 'there is no such reservation',
        detail = jsonb_build_object('code', 'no_such_reservation')::text,
        hint = 'It was never made, was rolled back or released, or has expired and was purged.';
end
$$;

comment on function idem_private.refuse_absent(text, text) is 'Raises IK003, or 40001 where the snapshot is too old to tell.';

revoke all on function idem_private.refuse_absent(text, text) from public;

-- sql/private/refuse_owner_call.sql
-- Called when the compare-and-set of an owner call has met no row, to say why. Nothing has been changed.
create or replace function idem_private.refuse_owner_call(scope text, key text, token uuid, leased_only boolean)
returns void
language plpgsql volatile as $$
#variable_conflict use_column
declare
    found_row idem_private.reservation;
begin
    perform idem_private.check_key(refuse_owner_call.scope, refuse_owner_call.key, 1, 1024, '');
    select r.* into found_row
    from idem_private.reservation as r
    where r.scope = refuse_owner_call.scope collate "C" and r.key = refuse_owner_call.key collate "C";
    if not found then
        perform idem_private.refuse_absent(refuse_owner_call.scope, refuse_owner_call.key);
    end if;
    if found_row.token is distinct from refuse_owner_call.token or found_row.released_at is not null then
        raise exception using
            errcode = 'IK002',
            message = 'this token does not own the reservation',
            detail = jsonb_build_object('code', 'not_the_owner', 'attempt', found_row.attempt)::text,
            hint = 'Another attempt has taken it over: roll back, and reserve again to learn the outcome.';
    end if;
    if refuse_owner_call.leased_only and not found_row.leased then
        raise exception using
            errcode = 'IK004',
            message = 'the reservation is atomic',
            detail = jsonb_build_object('code', 'other_mode', 'mode', 'atomic')::text,
            hint = 'Its transaction is its lease: roll back, or roll back to a savepoint set before reserve, to free the key.';
    end if;
    if found_row.completed_at is not null then
        raise exception using
            errcode = 'IK002',
            message = 'the reservation is already completed',
            detail = jsonb_build_object('code', 'already_completed', 'attempt', found_row.attempt)::text,
            hint = 'The first answer stays. Roll back, and reserve again to read it.';
    end if;
    raise exception using
        errcode = 'IK004',
        message = 'a leased reservation cannot be completed by the transaction that made it',
        detail = jsonb_build_object('code', 'same_transaction', 'mode', 'leased')::text,
        hint = 'Commit after reserve, so that the reservation survives a crash; then do the work and complete.';
end
$$;

comment on function idem_private.refuse_owner_call(text, text, uuid, boolean) is
'Raises IK003, IK002 or IK004: why a call that needs the current token changed nothing.';

revoke all on function idem_private.refuse_owner_call(text, text, uuid, boolean) from public;

-- sql/private/hold.sql
-- The row is locked first; the caller reads the clock after that, since the lock may have been waited for.
create or replace function idem_private.hold(scope text, key text, token uuid) returns idem_private.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
begin
    select r.* into held
    from idem_private.reservation as r
    where r.scope = hold.scope collate "C" and r.key = hold.key collate "C" and r.token = hold.token
        and r.leased and r.completed_at is null and r.released_at is null
    for update;
    if not found then
        perform idem_private.refuse_owner_call(hold.scope, hold.key, hold.token, true);
    end if;
    return held;
end
$$;

comment on function idem_private.hold(text, text, uuid) is
'Locks the leased row that the token owns; raises IK003, IK002 or IK004 where it does not.';

revoke all on function idem_private.hold(text, text, uuid) from public;

-- sql/private/free_key.sql
-- A first attempt that left nothing behind is as if it had never been made, so its row goes and a corrected request
-- may use the key. An earlier attempt or a checkpoint may have had effects: then the row stays, with its fingerprint.
--
-- An atomic row that was left behind becomes leased: nobody is to complete it at commit any more.
create or replace function idem_private.free_key(
    held idem_private.reservation, at timestamptz, keep boolean, token uuid
) returns void
language plpgsql volatile as $$
#variable_conflict use_column
begin
    if held.attempt = 1 and held.recovery_point is null and not free_key.keep then
        delete from idem_private.reservation as r where r.scope = held.scope and r.key = held.key;
        delete from idem_private.unfinished as u where u.scope = held.scope and u.key = held.key;
        return;
    end if;
    update idem_private.reservation as r
    set token = free_key.token, leased = true, released_at = free_key.at
    where r.scope = held.scope and r.key = held.key;
    insert into idem_private.unfinished (scope, key)
    values (held.scope, held.key)
    on conflict do nothing;
end
$$;

comment on function idem_private.free_key(idem_private.reservation, timestamptz, boolean, uuid) is
'Lets the next reserve have a key whose row the caller holds locked. Keep: its row stays even after a first attempt.';

revoke all on function idem_private.free_key(idem_private.reservation, timestamptz, boolean, uuid) from public;

-- sql/private/back_off.sql
create or replace function idem_private.back_off(claims int) returns interval
language sql immutable as $$
    select case when claims > 0 then least(interval '10 seconds' * 2 ^ least(claims - 1, 20), interval '1 hour') end
$$;

comment on function idem_private.back_off(int) is
'How long resolvers leave a key alone after so many claims: 10 seconds, twice as long each time, at most an hour.';

revoke all on function idem_private.back_off(int) from public;

-- sql/private/may_claim.sql
create or replace function idem_private.may_claim(
    claims int, max_claims int, claim_after timestamptz, at timestamptz
) returns boolean
language sql immutable as $$
    select claims < max_claims and coalesce(claim_after <= at, true)
$$;

comment on function idem_private.may_claim(int, int, timestamptz, timestamptz) is
'Whether a lapsed key is for resolvers now: not put off, and not claimed so often that an operator has to decide.';

revoke all on function idem_private.may_claim(int, int, timestamptz, timestamptz) from public;

-- sql/private/check_claim.sql
create or replace function idem_private.check_claim(max_rows int, policy text, scope text, key text) returns void
language plpgsql stable as $$
begin
    if check_claim.max_rows < 1 then
        raise exception using
            errcode = '22023',
            message = 'max_rows must be at least 1',
            detail = jsonb_build_object('code', 'max_rows_out_of_range', 'argument', 'max_rows')::text,
            hint = 'It bounds how many rows one call takes.';
    end if;
    -- what is null is not asked for
    perform idem_private.check_key(coalesce(check_claim.scope, '-'), coalesce(check_claim.key, '-'), 1, 1024, '');
    if check_claim.policy is not null and (idem_private.policy_of(check_claim.policy)).name is null then
        perform idem_private.check_call('-', '-', check_claim.policy);
    end if;
end
$$;

comment on function idem_private.check_claim(int, text, text, text) is
'Raises 22023, IK001 or IK006: a resolver that asks for what cannot be would wait for ever.';

revoke all on function idem_private.check_claim(int, text, text, text) from public;

-- sql/private/lapsed_keys.sql
-- Looks through the short list of unfinished keys, each found in the big table by its primary key: the subselect with
-- OFFSET keeps the planner from ever reading that table as a whole. A key that is named is looked at even if it is not
-- on the list, where triggers do not run.
create or replace function idem_private.lapsed_keys(
    at timestamptz, prefixes text[], wanted_policy text, wanted_scope text, wanted_key text
) returns table (scope text, key text)
language plpgsql stable as $$
#variable_conflict use_column
declare
    named record;
    look idem_private.reservation;
    settings idem_private.policy;
    found_keys text[] := array[]::text[];
begin
    if not idem_private.is_distributed() then
        return query
        select named.scope, named.key
        from (
            select u.scope, u.key, u.claims, u.claim_after
            from idem_private.unfinished as u
            where (prefixes is null or idem_private.is_within(u.scope, prefixes))
                and (wanted_scope is null or u.scope = wanted_scope collate "C")
                and (wanted_key is null or u.key = wanted_key collate "C")
            union all
            select wanted_scope collate "C", wanted_key collate "C", 0, null
            where not exists (
                select from idem_private.unfinished as u
                where u.scope = wanted_scope collate "C" and u.key = wanted_key collate "C"
            )
        ) as named
        cross join lateral (
            select r as row_, r.policy
            from idem_private.reservation as r
            where r.scope = named.scope and r.key = named.key
            offset 0
        ) as found
        inner join (
            select p.name, p.max_claims from idem_private.policy as p
            union all
            select p.name, p.max_claims from idem_private.retired_policy as p
        ) as settings on found.policy = settings.name
        where (wanted_policy is null or found.policy = wanted_policy collate "C")
            and idem_private.is_lapsed(found.row_, at)
            and idem_private.may_claim(named.claims, settings.max_claims, named.claim_after, at)
        order by idem_private.lapsed_at(found.row_), named.scope, named.key;
        return;
    end if;

    -- The same, row by row: Citus knows no offset inside of a lateral join, and hands no whole row to a function.
    for named in
        select u.scope, u.key, u.claims, u.claim_after
        from idem_private.unfinished as u
        where (prefixes is null or idem_private.is_within(u.scope, prefixes))
            and (wanted_scope is null or u.scope = wanted_scope collate "C")
            and (wanted_key is null or u.key = wanted_key collate "C")
    loop
        found_keys := found_keys || named.key;
        select r.* into look
        from idem_private.reservation as r
        where r.scope = named.scope and r.key = named.key and r.completed_at is null;
        settings := idem_private.policy_of(look.policy);
        if idem_private.is_lapsed(look, at) and (wanted_policy is null or look.policy = wanted_policy collate "C")
            and idem_private.may_claim(named.claims, settings.max_claims, named.claim_after, at) then
            scope := named.scope;
            key := named.key;
            return next;
        end if;
    end loop;
    if wanted_scope is not null and wanted_key <> all(found_keys) then
        scope := wanted_scope;
        key := wanted_key;
        return next;
    end if;
end
$$;

comment on function idem_private.lapsed_keys(timestamptz, text[], text, text, text) is
'Keys that looked as if a resolver could claim them; on a Citus cluster in no order, and a key that is named in any case.';

revoke all on function idem_private.lapsed_keys(timestamptz, text[], text, text, text) from public;

-- sql/private/claim.sql
-- The same attempt in other hands. There is no owner_xid, so that the transaction which claims may also complete.
create or replace function idem_private.claim(
    held idem_private.reservation, lease interval, at timestamptz
) returns idem.lapsed_reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    taken_at constant timestamptz := clock_timestamp();
    new_token constant uuid := gen_random_uuid();
    taken idem_private.reservation;
    noted idem_private.unfinished;
    secret bytea;
begin
    select s.value into strict secret from idem_private.secret as s;
    perform idem_private.record_lapse(held);
    update idem_private.reservation as r
    set
        owned_at = taken_at,
        owner_xid = null,
        token = new_token,
        leased = true,
        must_complete = false,
        put_off = false,
        lease = claim.lease,
        lease_until = claim.at + claim.lease
    where r.scope = held.scope and r.key = held.key
    returning r.* into taken;
    insert into idem_private.unfinished as u (scope, key, claims)
    values (held.scope, held.key, 1)
    on conflict (scope, key) do update set claims = u.claims + 1, claim_after = null
    returning u.* into noted;
    -- After the list, so that idem_private.begin_leased does not take that write for a reservation's.
    perform idem_private.record_event(
        taken, 'claimed', claim.at, null,
        jsonb_build_object('claims', noted.claims, 'lease_until', taken.lease_until)
    );
    perform idem_private.commit_durably();
    return row(
        taken.scope, taken.key, taken.token, taken.attempt,
        idem_private.derive_key(secret, taken.scope, taken.key, ''),
        taken.recovery_point, taken.state, taken.policy, taken.created_at, idem_private.lapsed_at(held),
        noted.claims, noted.reason
    )::idem.lapsed_reservation;
end
$$;

comment on function idem_private.claim(idem_private.reservation, interval, timestamptz) is
'Gives the row of a lapsed key, which the caller holds locked, to a resolver.';

revoke all on function idem_private.claim(idem_private.reservation, interval, timestamptz) from public;

-- sql/private/check_resolution.sql
create or replace function idem_private.check_resolution(
    scope text, key text, action text, reason text, status int, headers jsonb, body bytea
) returns void
language plpgsql stable as $$
begin
    perform idem_private.check_key(check_resolution.scope, check_resolution.key, 1, 1024, '');
    if check_resolution.action is null or check_resolution.action not in ('complete', 'release', 'retry') then
        raise exception using
            errcode = '22023',
            message = 'unknown action',
            detail = jsonb_build_object('code', 'unknown_action', 'argument', 'action')::text,
            hint = 'The actions are complete, release and retry.';
    elsif coalesce(check_resolution.reason, '') collate "C" !~ '\S' then
        raise exception using
            errcode = '22023',
            message = 'a reason is needed',
            detail = jsonb_build_object('code', 'reason_missing', 'argument', 'reason')::text,
            hint = 'Say how you know what happened; it is recorded together with your role.';
    elsif check_resolution.action <> 'complete' and (
        check_resolution.status is not null or check_resolution.headers is not null
        or check_resolution.body is not null
    ) then
        raise exception using
            errcode = '22023',
            message = 'an answer goes with action complete',
            detail = jsonb_build_object('code', 'answer_without_complete', 'argument', 'action')::text,
            hint = 'After release and retry the next attempt will give the answer.';
    elsif not idem_private.headers_are_pairs(check_resolution.headers) then
        perform idem_private.refuse_headers();
    end if;
end
$$;

comment on function idem_private.check_resolution(text, text, text, text, int, jsonb, bytea) is
'Raises IK001 or 22023 where an operator''s decision makes no sense.';

revoke all on function idem_private.check_resolution(text, text, text, text, int, jsonb, bytea) from public;

-- sql/private/refuse_resolution.sql
create or replace function idem_private.refuse_resolution(held idem_private.reservation, phase text) returns void
language plpgsql stable as $$
begin
    if held.completed_at is not null then
        raise exception using
            errcode = 'IK004',
            message = 'the reservation is finished: there is nothing to decide',
            detail = jsonb_build_object(
                'code', 'finished', 'outcome', refuse_resolution.phase, 'attempt', held.attempt
            )::text,
            hint = 'idem.lookup shows the answer.';
    end if;
    raise exception using
        errcode = 'IK004',
        message = format('the reservation is %s, not lapsed', replace(refuse_resolution.phase, '_', ' ')),
        detail = jsonb_build_object(
            'code', 'not_lapsed', 'outcome', refuse_resolution.phase, 'attempt', held.attempt
        )::text,
        hint = case
            when not held.leased then 'Its transaction is open: commit it or roll it back.'
            when refuse_resolution.phase = 'in_progress'
                then 'Wait for the end of its lease. force => true takes it from its owner, who may be at work.'
            else 'The next attempt will start. force => true decides otherwise.'
        end;
end
$$;

comment on function idem_private.refuse_resolution(idem_private.reservation, text) is
'Raises IK004: why an operator''s decision does not fit the row.';

revoke all on function idem_private.refuse_resolution(idem_private.reservation, text) from public;

-- sql/private/purge_events.sql
-- What became of an unfinished key stays for as long as it is unfinished. An operator's decision stays for 90 days
-- whatever the setting says, so that nobody who may purge can take it off the record at once.
create or replace function idem_private.purge_events(max_rows int) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    setting constant text := nullif(current_setting('idem.event_retention', true), '');
    oldest timestamptz := idem_private.clock() - coalesce(setting::interval, '90 days');
    oldest_decision timestamptz := least(oldest, idem_private.clock() - interval '90 days');
    prefixes constant text[] := idem_private.bound_prefixes();
    purged bigint;
begin
    with old as (
        select e.scope, e.key, e.number
        from idem_private.event as e
        where e.at < oldest and (e.event <> 'resolved' or e.at < oldest_decision)
            and (prefixes is null or idem_private.is_within(e.scope, prefixes))
            and not exists (
                select from idem_private.reservation as r
                where r.scope = e.scope and r.key = e.key and r.completed_at is null
            )
        order by e.at
        limit purge_events.max_rows
        for update skip locked
    )

    delete from idem_private.event as e
    using old as o
    where e.scope = o.scope and e.key = o.key and e.number = o.number;
    get diagnostics purged = row_count;
    return purged;
end
$$;

comment on function idem_private.purge_events(int) is
'Deletes a batch of the oldest events that are past idem.event_retention (90 days unless set), and returns how many.';

revoke all on function idem_private.purge_events(int) from public;

-- sql/private/forget_events.sql
create or replace function idem_private.forget_events(scope text, key text) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    forgotten bigint;
begin
    with of_finished as materialized (
        select e.key, e.number
        from idem_private.event as e
        where e.scope = forget_events.scope collate "C"
            and (forget_events.key is null or e.key = forget_events.key collate "C")
            and not exists (
                select from idem_private.reservation as r
                where r.scope = e.scope and r.key = e.key and r.completed_at is null
            )
        for update skip locked
    )

    delete from idem_private.event as e
    using of_finished as f
    where e.scope = forget_events.scope collate "C" and e.key = f.key and e.number = f.number;
    get diagnostics forgotten = row_count;
    return forgotten;
end
$$;

comment on function idem_private.forget_events(text, text) is
'Deletes the events of a key, or of all keys of a scope, but for unfinished ones, and returns how many.';

revoke all on function idem_private.forget_events(text, text) from public;

-- sql/private/purge_scope.sql
-- What idem.purge does with a batch, for the due keys of one scope: each statement is about one scope, so that it goes
-- to one node of a Citus cluster.
create or replace function idem_private.purge_scope(scope text, keys text[], at timestamptz) returns bigint
language plpgsql volatile as $$
#variable_conflict use_column
declare
    longest_wait constant interval := interval '30 days';
    held idem_private.reservation;
    settings idem_private.policy;
    expiry timestamptz;
    phase text;
    absent text[] := array[]::text[];
    cleared bigint := bigint '0';
    removed bigint;
begin
    for held in
        select r.*
        from idem_private.reservation as r
        where r.scope = purge_scope.scope collate "C" and r.key = any(purge_scope.keys)
            and coalesce(r.purge_at, r.expires_at) <= purge_scope.at
        for update skip locked
    loop
        settings := idem_private.policy_of(held.policy);
        expiry := idem_private.real_expiry(
            held.expires_at, coalesce(held.completed_at, purge_scope.at), settings.min_retention
        );
        phase := case
            when held.completed_at is null then 'unfinished'
            else idem_private.phase(held, settings.min_retention, settings.tombstone, purge_scope.at)
        end;
        if phase = 'unfinished' and not held.leased then
            -- left behind, where no trigger could list it
            insert into idem_private.unfinished (scope, key) values (held.scope, held.key) on conflict do nothing;
        end if;
        if phase = 'absent' then
            absent := absent || held.key;
            continue;
        elsif phase = 'expired' then
            cleared := cleared + case when held.expired_at is null then 1 else 0 end;
            held.expired_at := coalesce(held.expired_at, expiry);
            expiry := held.expired_at + settings.tombstone;
        end if;
        expiry := least(expiry, purge_scope.at + longest_wait);
        update idem_private.reservation as r
        set
            expires_at = case when phase = 'expired' then '-infinity' else r.expires_at end,
            expired_at = held.expired_at,
            purge_at = expiry,
            fields = case when phase <> 'expired' then r.fields end,
            recovery_point = case when phase <> 'expired' then r.recovery_point end,
            state = case when phase <> 'expired' then r.state end,
            status = case when phase <> 'expired' then r.status end,
            headers = case when phase <> 'expired' then r.headers end,
            body = case when phase <> 'expired' then r.body end
        where r.scope = held.scope and r.key = held.key;
    end loop;

    delete from idem_private.reservation as r
    where r.scope = purge_scope.scope collate "C" and r.key = any(absent);
    get diagnostics removed = row_count;
    return removed + cleared;
end
$$;

comment on function idem_private.purge_scope(text, text[], timestamptz) is
'Removes the finished keys of a scope whose retention is over, or makes tombstones of them, among those that are due.';

revoke all on function idem_private.purge_scope(text, text[], timestamptz) from public;

-- sql/private/purge_events_of_nodes.sql
create or replace function idem_private.purge_events_of_nodes(max_rows int) returns bigint
language plpgsql volatile as $$
declare
    setting constant text := nullif(current_setting('idem.event_retention', true), '');
    oldest constant timestamptz := idem_private.clock() - coalesce(setting::interval, '90 days');
    oldest_decision constant timestamptz := least(oldest, idem_private.clock() - interval '90 days');
    prefixes constant text[] := idem_private.bound_prefixes();
    batch record;
    removed bigint;
    purged bigint := bigint '0';
begin
    for batch in
        select old.scope, array_agg(old.number) as numbers
        from (
            select e.scope, e.number
            from idem_private.event as e
            where e.at < oldest and (e.event <> 'resolved' or e.at < oldest_decision)
                and (prefixes is null or idem_private.is_within(e.scope, prefixes))
                and not exists (
                    select from idem_private.reservation as r
                    where r.scope = e.scope and r.key = e.key and r.completed_at is null
                )
            order by e.at
            limit purge_events_of_nodes.max_rows
        ) as old
        group by old.scope
    loop
        delete from idem_private.event as e
        where e.scope = batch.scope and e.number = any(batch.numbers)
            and not exists (
                select from idem_private.reservation as r
                where r.scope = e.scope and r.key = e.key and r.completed_at is null
            );
        get diagnostics removed = row_count;
        purged := purged + removed;
    end loop;
    return purged;
end
$$;

comment on function idem_private.purge_events_of_nodes(int) is 'idem_private.purge_events on a Citus cluster, scope by scope.';

revoke all on function idem_private.purge_events_of_nodes(int) from public;

-- sql/private/short_hash.sql
create or replace function idem_private.short_hash(secret bytea, message bytea) returns text
language sql immutable as $$
    select encode(substr(sha256(secret || '\x02' || message), 1, 6), 'hex')
$$;

comment on function idem_private.short_hash(bytea, bytea) is
'48 bits that name a value without telling it: enough to see a difference, under the secret of this database.';

revoke all on function idem_private.short_hash(bytea, bytea) from public;

-- sql/private/pointer_path.sql
create or replace function idem_private.pointer_path(doc jsonb, pointer text) returns text[]
language plpgsql immutable as $$
declare
    node jsonb := pointer_path.doc;
    path text[] := array[]::text[];
    step text;
begin
    foreach step in array (string_to_array(pointer_path.pointer, '/'))[2:] loop
        step := replace(replace(step, '~1', '/'), '~0', '~');
        -- Postgres also takes -1, 01 and blanks for the number of an element.
        node := case
            when jsonb_typeof(node) = 'object' then node -> step
            when jsonb_typeof(node) = 'array' and step collate "C" ~ '^(0|[1-9][0-9]{0,8})$' then node -> step::int
        end;
        if node is null then
            return null;
        end if;
        path := path || step;
    end loop;
    return path;
end
$$;

comment on function idem_private.pointer_path(jsonb, text) is
'The path of Postgres to where an RFC 6901 pointer leads in this document, or null if that is nowhere.';

revoke all on function idem_private.pointer_path(jsonb, text) from public;

-- sql/private/without_ignored.sql
-- An element of an array leaves a null behind, so that the others keep their numbers.
create or replace function idem_private.without_ignored(doc jsonb, ignore text[]) returns jsonb
language plpgsql immutable as $$
declare
    pointer text;
    path text[];
begin
    foreach pointer in array without_ignored.ignore loop
        path := idem_private.pointer_path(without_ignored.doc, pointer);
        without_ignored.doc := case
            when path is null then without_ignored.doc
            when path = '{}' then 'null'
            when jsonb_typeof(without_ignored.doc #> path[:cardinality(path) - 1]) = 'object'
                then without_ignored.doc #- path
            else jsonb_set(without_ignored.doc, path, 'null')
        end;
    end loop;
    return without_ignored.doc;
end
$$;

comment on function idem_private.without_ignored(jsonb, text[]) is
'The document without what these pointers lead to.';

revoke all on function idem_private.without_ignored(jsonb, text[]) from public;

-- sql/private/only_included.sql
create or replace function idem_private.only_included(doc jsonb, include text[]) returns jsonb
language sql immutable as $$
    select coalesce(jsonb_object_agg(i.pointer, doc #> i.path), '{}')
    from (
        select p.pointer, idem_private.pointer_path(doc, p.pointer) as path from unnest(include) as p (pointer)
    ) as i
    where i.path is not null
$$;

comment on function idem_private.only_included(jsonb, text[]) is
'What these pointers lead to, by pointer.';

revoke all on function idem_private.only_included(jsonb, text[]) from public;

-- sql/private/check_pointers.sql
create or replace function idem_private.check_pointers(argument text, pointers text[]) returns void
language plpgsql immutable as $$
begin
    if exists (
        select from unnest(check_pointers.pointers) as p (pointer)
        where p.pointer is null or p.pointer collate "C" !~ '^(/([^~]|~[01])*)?$'
    ) then
        raise exception using
            errcode = '22023',
            message = format('%s must be JSON pointers', check_pointers.argument),
            detail = jsonb_build_object('code', 'pointer_invalid', 'argument', check_pointers.argument)::text,
            hint = 'A pointer (RFC 6901) is empty or begins with a slash: /order/id.';
    end if;
end
$$;

comment on function idem_private.check_pointers(text, text[]) is 'Raises 22023 unless all are RFC 6901 pointers.';

revoke all on function idem_private.check_pointers(text, text[]) from public;

-- sql/private/check_request.sql
create or replace function idem_private.check_request(method text, path text) returns void
language plpgsql immutable as $$
begin
    if check_request.method is null or check_request.path is null then
        raise exception using
            errcode = '22023',
            message = 'a request has a method and a path',
            detail = jsonb_build_object(
                'code', 'null', 'argument', case when check_request.method is null then 'method' else 'path' end
            )::text,
            hint = 'Pass the request target as it was received, with its query.';
    end if;
end
$$;

comment on function idem_private.check_request(text, text) is 'Raises 22023 where method or path is null.';

revoke all on function idem_private.check_request(text, text) from public;

-- sql/private/plain_json.sql
-- jsonb forgets repeated members, and writes 1e100000 out in full. Here a member that comes again becomes an object
-- whose one member is named by the mark, and a number out of the ordinary a string that begins with it. The mark is
-- secret, so no document has it by itself.
--
-- What is ordinary is decided by value: idem_private.read_json sends every document here that holds such a number in
-- whatever spelling.
create or replace function idem_private.plain_json(value json, mark text, depth int) returns jsonb
language plpgsql immutable as $$
declare
    number numeric;
begin
    if plain_json.depth = 0 and json_typeof(plain_json.value) in ('object', 'array') then
        raise statement_too_complex;
    end if;
    case json_typeof(plain_json.value)
        when 'object' then
            return (
                select coalesce(jsonb_object_agg(m.key, m.value), '{}')
                from (
                    select
                        e.key,
                        case
                            when count(*) = 1 then jsonb_agg(e.value) -> 0
                            else jsonb_build_object(plain_json.mark, jsonb_agg(e.value order by e.position))
                        end as value
                    from (
                        select
                            c.key, c.position,
                            idem_private.plain_json(c.value, plain_json.mark, plain_json.depth - 1) as value
                        from json_each(plain_json.value) with ordinality as c (key, value, position)
                    ) as e
                    group by e.key
                ) as m
            );
        when 'array' then
            return (
                select
                    coalesce(
                        jsonb_agg(
                            case
                                when json_typeof(e.value) in ('object', 'array', 'number')
                                    then idem_private.plain_json(e.value, plain_json.mark, plain_json.depth - 1)
                                else e.value::jsonb
                            end
                            order by e.position
                        ),
                        '[]'
                    )
                from json_array_elements(plain_json.value) with ordinality as e (value, position)
            );
        when 'number' then
            number := trim_scale(plain_json.value::text::numeric);
            if abs(number) >= 1e60 or scale(number) > 60 then
                return to_jsonb(plain_json.mark || encode(numeric_send(number), 'hex'));
            end if;
            return to_jsonb(number);
        else
            return plain_json.value::jsonb;
    end case;
end
$$;

comment on function idem_private.plain_json(json, text, int) is
'The document as jsonb, with all that jsonb would lose or bloat put in another form; raises 54001 where it is nested deeper than that.';

revoke all on function idem_private.plain_json(json, text, int) from public;

-- sql/private/read_json.sql
-- Every step is linear in the size of the body, which is bounded; the step that costs most has bounds of its own.
create or replace function idem_private.read_json(body bytea, mark text) returns jsonb
language plpgsql immutable as $$
declare
    max_bytes constant int := 1048576;
    max_depth constant int := 100;
    max_bytes_of_odd constant int := 262144;
    max_parsed_of_odd constant int := 8388608;
    max_containers_of_odd constant int := 10000;
    content text;
    doc jsonb;
    containers int;
begin
    if octet_length(read_json.body) not between 1 and max_bytes then
        return null;
    end if;
    begin
        content := convert_from(read_json.body, 'UTF8');
        doc := content::jsonb;
    exception
        when invalid_text_representation or untranslatable_character or numeric_value_out_of_range
            or character_not_in_repertoire or statement_too_complex or feature_not_supported then
            return null;
    end;

    if octet_length(replace(replace(content, '[', ''), '{', '')) < octet_length(content) - max_depth
        and jsonb_path_exists(doc, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")') then
        return null;
    end if;

    -- Numbers with exponents, which jsonb would write out in full, or with many digits; and colons written as an
    -- escape, of which the count must know: every colon of jsonb's text is in the body too, and one that is not in its
    -- text is that of a repeated member, which jsonb has dropped.
    if (case
        when content collate "C" ~ '(^|[[:space:]:,[])-?([0-9.]+[eE]|[0-9.]{60})|\\u003[aA]' then true
        else octet_length(content) - octet_length(replace(content, ':', ''))
            <> octet_length(doc::text) - octet_length(replace(doc::text, ':', ''))
    end) then
        -- Each level is parsed anew.
        containers := octet_length(content) - octet_length(translate(content, '[{', ''));
        if octet_length(content) > max_bytes_of_odd or containers > max_containers_of_odd
            or octet_length(content) * least(containers, max_depth) > max_parsed_of_odd then
            return null;
        end if;
        -- A repeated member, which the depth of doc does not tell of, may be nested too.
        begin
            return idem_private.plain_json(content::json, read_json.mark, max_depth);
        exception
            when statement_too_complex then
                return null;
        end;
    end if;
    return doc;
end
$$;

comment on function idem_private.read_json(bytea, text) is
'The body as a document that tells all that counts, or null where it must be taken by its bytes.';

revoke all on function idem_private.read_json(bytea, text) from public;

-- sql/private/canonical_json.sql
-- jsonb's text is the same for equal documents but for the zeros that end a fraction. The check first: it is cheap.
create or replace function idem_private.canonical_json(doc jsonb) returns text
language plpgsql immutable as $$
declare
    value text := doc::text;
begin
    if value collate "C" ~ '[0-9]\.[0-9]*0([],}]|$)' then
        return regexp_replace(
            value collate "C",
            '("(?:[^"\\]|\\.)*")|(\.[0-9]*[1-9])0+(?![0-9])|\.0+(?![0-9])',
            '\1\2',
            'g'
        );
    end if;
    return value;
end
$$;

comment on function idem_private.canonical_json(jsonb) is 'The same text for every spelling of a document.';

revoke all on function idem_private.canonical_json(jsonb) from public;

-- sql/private/json_fields.sql
-- A text with n commas outside strings has n + 1 leaves, so it is known beforehand whether the walk is worth it. A leaf
-- is hashed together with its pointer, so that equal values do not look equal.
create or replace function idem_private.json_fields(roots jsonb, value text, mark text, secret bytea) returns jsonb
language plpgsql immutable as $$
declare
    max_leaves constant int := 1000;
    max_pointer constant int := 500;
    fields jsonb;
    readable boolean;
begin
    if octet_length(replace(json_fields.value, ',', '')) <= octet_length(json_fields.value) - max_leaves then
        json_fields.value := regexp_replace(json_fields.value collate "C", '"(?:[^"\\]|\\.)*"', '', 'g');
        if octet_length(replace(json_fields.value, ',', '')) <= octet_length(json_fields.value) - max_leaves then
            return null;
        end if;
    end if;

    with recursive node (pointer, value) as (
        select r.key, r.value
        from jsonb_each(json_fields.roots) as r
        union all
        select
            n.pointer || '/' || coalesce(replace(replace(c.key, '~', '~0'), '/', '~1'), (c.position - 1)::text),
            coalesce(c.member, c.element)
        from node as n
        cross join lateral rows from (
            jsonb_each(case when jsonb_typeof(n.value) = 'object' then n.value end),
            jsonb_array_elements(case when jsonb_typeof(n.value) = 'array' then n.value end)
        ) with ordinality as c (key, member, element, position)
        where jsonb_typeof(n.value) in ('object', 'array') and length(n.pointer) <= max_pointer
    )
    select
        jsonb_object_agg(
            n.pointer,
            idem_private.short_hash(
                json_fields.secret,
                convert_to(
                    n.pointer || ' ' || case
                        when jsonb_typeof(n.value) = 'number' then trim_scale(n.value::numeric)::text
                        else n.value::text
                    end,
                    'UTF8'
                )
            )
        ),
        bool_and(length(n.pointer) <= max_pointer and strpos(n.pointer, json_fields.mark) = 0)
    into fields, readable
    from node as n
    where jsonb_typeof(n.value) not in ('object', 'array') or n.value in ('{}', '[]')
        or length(n.pointer) > max_pointer;
    return case when readable then fields when fields is null then '{}' end;
end
$$;

comment on function idem_private.json_fields(jsonb, text, text, bytea) is
'Short hashes of the leaves of a document by their pointers, or null where there are too many, or they have no names.';

revoke all on function idem_private.json_fields(jsonb, text, text, bytea) from public;

-- sql/private/percent_decoded.sql
-- What encode() has escaped is put back last: it has no percent sign, so nothing is cut in two.
create or replace function idem_private.percent_decoded(escaped text) returns bytea
language sql immutable as $$
    select
        case
            when strpos(escaped, '%') = 0 then decode(escaped, 'escape')
            else (
                select
                    string_agg(
                        case
                            when p.position = 1 then decode(p.piece, 'escape')
                            when p.piece collate "C" ~ '^[0-9A-Fa-f]{2}'
                                then decode(left(p.piece, 2), 'hex') || decode(substr(p.piece, 3), 'escape')
                            else '\x25'::bytea || decode(p.piece, 'escape')
                        end,
                        '' order by p.position
                    )
                from unnest(string_to_array(escaped, '%')) with ordinality as p (piece, position)
            )
        end
$$;

comment on function idem_private.percent_decoded(text) is
'The bytes behind percent-encoded text that encode(..., ''escape'') has made of them; a percent sign alone is itself.';

revoke all on function idem_private.percent_decoded(text) from public;

-- sql/private/read_form.sql
-- As browsers read it: fields are between ampersands, empty ones do not count, a plus is a blank. The escaped text has
-- the separators where the bytes have them, whatever else the bytes are and whatever the encoding of the database is.
create or replace function idem_private.read_form(body bytea, out names bytea[], out contents bytea[])
language plpgsql immutable as $$
declare
    max_bytes constant int := 1048576;
    max_fields constant int := 10000;
    max_escapes constant int := 100000;
    content text;
begin
    if octet_length(read_form.body) > max_bytes then
        return;
    end if;
    content := replace(encode(read_form.body, 'escape'), '+', ' ');
    if octet_length(content) - octet_length(replace(content, '&', '')) >= max_fields
        or octet_length(content) - octet_length(replace(content, '%', '')) > max_escapes then
        return;
    end if;
    select
        coalesce(array_agg(idem_private.percent_decoded(split_part(f.field, '=', 1)) order by f.position), '{}'),
        coalesce(
            array_agg(
                idem_private.percent_decoded(substr(f.field, length(split_part(f.field, '=', 1)) + 2))
                order by f.position
            ),
            '{}'
        )
    into read_form.names, read_form.contents
    from unnest(string_to_array(content, '&')) with ordinality as f (field, position)
    where f.field <> '';
end
$$;

comment on function idem_private.read_form(bytea) is
'Names and contents of the fields of a form in order, or null where it must be taken by its bytes.';

revoke all on function idem_private.read_form(bytea) from public;

-- sql/private/part_head.sql
create or replace function idem_private.part_head(head text) returns text
language plpgsql immutable as $$
begin
    return (
        select string_agg(h.line, E'\r\n' order by h.line collate "C")
        from (
            select
                lower(split_part(l.line, ':', 1) collate "C") || ':'
                || btrim(substr(l.line, length(split_part(l.line, ':', 1)) + 2), E' \t') as line
            from unnest(string_to_array(part_head.head, E'\r\n')) as l (line)
            where l.line <> ''
        ) as h
    );
end
$$;

comment on function idem_private.part_head(text) is
'The header fields of a part of a multipart body, the same for every order and spelling of their names.';

revoke all on function idem_private.part_head(text) from public;

-- sql/private/read_multipart.sql
-- The boundary is another one in every attempt, so it does not count; nor does what stands before the first part and
-- after the last. To find the next boundary what is left is copied, which bounds the number of parts of a large body.
create or replace function idem_private.read_multipart(
    body bytea, content_type text, out names bytea[], out contents bytea[]
)
language plpgsql immutable as $$
declare
    max_bytes constant int := 16777216;
    max_copied constant bigint := 4294967296;
    max_head constant int := 16384;
    boundary text[];
    delimiter bytea;
    rest bytea;
    piece bytea;
    head text;
    blank_line int;
    named text[];
    found_names bytea[] := array[]::bytea[];
    found_contents bytea[] := array[]::bytea[];
begin
    boundary := regexp_match(
        read_multipart.content_type collate "C",
        ';[ \t]*boundary[ \t]*=[ \t]*(?:"([^"\\]{1,70})"|([^][ \t",;:()<>@\\/?={}]{1,70}))[ \t]*(?:;|$)',
        'i'
    );
    if boundary is null or octet_length(read_multipart.body) > max_bytes then
        return;
    end if;
    delimiter := convert_to(E'\r\n--' || coalesce(boundary[1], boundary[2]), 'UTF8');
    rest := convert_to(E'\r\n', 'UTF8') || read_multipart.body;

    loop
        -- up to the next delimiter; before the first one there is no part
        if position(delimiter in rest) = 0 then
            return;
        end if;
        if piece is null then
            piece := '';
        else
            piece := substr(rest, 1, position(delimiter in rest) - 1);
            blank_line := position('\x0d0a0d0a'::bytea in piece);
            if blank_line = 0 or blank_line > max_head then
                return;
            end if;
            head := ltrim(encode(substr(piece, 1, blank_line - 1), 'escape'), E' \t');
            if head <> '' and left(head, 2) <> E'\r\n' then
                return;
            end if;
            named := regexp_match(
                head collate "C",
                '\r\ncontent-disposition[ \t]*:[^\r\n]*;[ \t]*name='
                '(?:"((?:[^"\\]|\\\\.|\\[0-7]{3})*)"|([^ \t;"\r\n]+))',
                'i'
            );
            found_names := found_names || decode(coalesce(named[1], named[2], ''), 'escape');
            found_contents := found_contents || sha256(
                decode(coalesce(idem_private.part_head(head), ''), 'escape') || sha256(substr(piece, blank_line + 4))
            );
            if cardinality(found_names) * octet_length(read_multipart.body)::bigint > max_copied then
                return;
            end if;
        end if;
        rest := substr(rest, position(delimiter in rest) + octet_length(delimiter));
        if substr(rest, 1, 2) = '--' then
            read_multipart.names := found_names;
            read_multipart.contents := found_contents;
            return;
        end if;
    end loop;
end
$$;

comment on function idem_private.read_multipart(bytea, text) is
'Names of the parts of a multipart body in order and digests of them, or null where it must be taken by its bytes.';

revoke all on function idem_private.read_multipart(bytea, text) from public;

-- sql/private/part_pointers.sql
create or replace function idem_private.part_pointers(names bytea[]) returns text[]
language plpgsql immutable as $$
declare
    readable text[];
begin
    begin
        readable := array(
            select convert_from(n.name, 'UTF8') from unnest(part_pointers.names) with ordinality as n (name, position)
            order by n.position
        );
    exception
        when character_not_in_repertoire or untranslatable_character then
            readable := array(
                select encode(n.name, 'escape') from unnest(part_pointers.names) with ordinality as n (name, position)
                order by n.position
            );
    end;
    return array(
        select '/' || replace(replace(r.name, '~', '~0'), '/', '~1')
        from unnest(readable) with ordinality as r (name, position)
        order by r.position
    );
end
$$;

comment on function idem_private.part_pointers(bytea[]) is
'The names of the parts of a form as JSON pointers; escaped where one is no text.';

revoke all on function idem_private.part_pointers(bytea[]) from public;

-- sql/private/part_fields.sql
create or replace function idem_private.part_fields(
    names bytea[],
    contents bytea[],
    ignore text[],
    include text[],
    secret bytea,
    out content bytea,
    out fields jsonb
)
language plpgsql stable as $$
#variable_conflict use_column
declare
    max_fields constant int := 1000;
    pointers constant text[] := idem_private.part_pointers(part_fields.names);
begin
    with part as (
        select
            p.position,
            p.pointer,
            int4send(octet_length(p.name)) || p.name || int4send(octet_length(p.content)) || p.content as entry
        from unnest(pointers, part_fields.names, part_fields.contents)
            with ordinality as p (pointer, name, content, position)
        where (part_fields.ignore is null or not array['', p.pointer] && part_fields.ignore)
            and (coalesce(part_fields.include, '{}') = '{}' or array['', p.pointer] && part_fields.include)
    ),
    field as (
        select p.pointer, string_agg(p.entry, '' order by p.position) as entries from part as p group by p.pointer
    )
    select
        (select coalesce(string_agg(p.entry, '' order by p.position), '') from part as p),
        (
            select case when count(*) <= max_fields then jsonb_object_agg(
                f.pointer,
                idem_private.short_hash(part_fields.secret, convert_to(f.pointer || ' ', 'UTF8') || f.entries)
            ) end
            from field as f
        )
    into part_fields.content, part_fields.fields;
    if part_fields.content = '' then
        part_fields.fields := '{}';
    end if;
end
$$;

comment on function idem_private.part_fields(bytea[], bytea[], text[], text[], bytea) is
'What counts of the parts of a form, and short hashes by pointer, or null where there are too many.';

revoke all on function idem_private.part_fields(bytea[], bytea[], text[], text[], bytea) from public;

-- sql/private/read_request.sql
-- One reading of the body gives both: the fingerprint, which decides, and the fields, which name what differs. What is
-- hashed begins with a byte of its own that is not zero, as that of derived keys is, and of every piece the length is
-- hashed too, so that nothing can stand for something else.
create or replace function idem_private.read_request(
    method text,
    path text,
    body bytea,
    content_type text,
    ignore text[],
    include text[],
    out fingerprint bytea,
    out fields jsonb
)
language plpgsql stable as $$
#variable_conflict use_variable
declare
    -- bytes in all, of the pointers and the hashes
    max_fields constant int := 131072;
    secret bytea;
    mark text;
    media_type constant text := lower(btrim(split_part(read_request.content_type, ';', 1), E' \t') collate "C");
    kind text := 'bytes';
    content bytea := coalesce(read_request.body, '');
    doc jsonb;
    value text;
    names bytea[];
    contents bytea[];
begin
    select s.value into strict secret from idem_private.secret as s;

    if media_type = 'application/json' or media_type like '%/%+json' then
        mark := encode(idem_private.keyed_hash(secret, '\x03'), 'hex');
        doc := idem_private.read_json(content, mark);
    elsif media_type = 'application/x-www-form-urlencoded' then
        select f.names, f.contents into names, contents from idem_private.read_form(content) as f;
    elsif media_type like 'multipart/%' then
        select m.names, m.contents into names, contents
        from idem_private.read_multipart(content, read_request.content_type) as m;
    end if;

    if doc is not null then
        kind := 'json';
        if read_request.ignore is not null then
            doc := idem_private.without_ignored(doc, read_request.ignore);
        end if;
        if cardinality(read_request.include) > 0 then
            kind := 'included';
            doc := idem_private.only_included(doc, read_request.include);
        end if;
        value := idem_private.canonical_json(doc);
        content := convert_to(value, 'UTF8');
        fields := idem_private.json_fields(
            case kind when 'json' then jsonb_build_object('', doc) else doc end, value, mark, secret
        );
        if read_request.ignore is not null then
            fields := fields - read_request.ignore;
        end if;
    elsif names is not null then
        kind := 'parts';
        select p.content, p.fields into content, fields
        from idem_private.part_fields(names, contents, read_request.ignore, read_request.include, secret) as p;
    end if;

    content := idem_private.keyed_hash(secret, '\x04' || convert_to(kind, 'UTF8') || sha256(content));
    if kind = 'bytes' then
        fields := jsonb_build_object('', idem_private.short_hash(secret, content));
    elsif fields is null or pg_column_size(fields) > max_fields then
        fields := jsonb_build_object('body', idem_private.short_hash(secret, content));
    end if;
    if read_request.method is not null then
        fingerprint := idem_private.keyed_hash(
            secret,
            '\x01' || content
            || int4send(octet_length(read_request.method)) || int4send(octet_length(read_request.path))
            || convert_to(
                upper(read_request.method collate "C") || read_request.path || coalesce(media_type, ''), 'UTF8'
            )
        );
        fields := fields || jsonb_build_object(
            'method', idem_private.short_hash(secret, convert_to(upper(read_request.method collate "C"), 'UTF8')),
            'path', idem_private.short_hash(secret, convert_to(read_request.path, 'UTF8')),
            'content_type', idem_private.short_hash(secret, convert_to(coalesce(media_type, ''), 'UTF8'))
        );
    end if;
end
$$;

comment on function idem_private.read_request(text, text, bytea, text, text[], text[]) is
'Fingerprint of a request, and short hashes of its parts; without a method, of its body alone.';

revoke all on function idem_private.read_request(text, text, bytea, text, text[], text[]) from public;

-- sql/private/key_of_header.sql
-- RFC 9651 calls it a String; most clients send the characters alone.
create or replace function idem_private.key_of_header(header text) returns text
language sql immutable as $$
    select
        case
            when btrim(header, E' \t') collate "C" ~ '^"([ !#-[\]-~]|\\["\\])*"$'
                then regexp_replace(
                    substr(btrim(header, E' \t'), 2, length(btrim(header, E' \t')) - 2), '\\(["\\])', '\1', 'g'
                )
            when btrim(header, E' \t') collate "C" ~ '^[^[:space:],"\\]+$' then btrim(header, E' \t')
        end
$$;

comment on function idem_private.key_of_header(text) is
'The key that the value of an Idempotency-Key header names, quoted or bare; null where it names none.';

revoke all on function idem_private.key_of_header(text) from public;

-- sql/private/header_fits.sql
-- Whether the scope is acceptable is for reserve to say, and no fault of the client's.
create or replace function idem_private.header_fits(key text, settings idem_private.policy) returns boolean
language plpgsql stable as $$
begin
    perform idem_private.check_key(
        'any', header_fits.key, settings.key_min_length, settings.key_max_length, settings.key_pattern
    );
    return true;
exception
    when sqlstate 'IK001' then
        return false;
end
$$;

comment on function idem_private.header_fits(text, idem_private.policy) is
'Whether a key from a header is acceptable under this policy.';

revoke all on function idem_private.header_fits(text, idem_private.policy) from public;

-- sql/private/http_problems.sql
-- The one place that says what an outcome is over HTTP, in both dialects.
create or replace function idem_private.http_problems(profile text)
returns table (outcome text, status int, code text, title text, detail text, stripe_type text)
language sql immutable as $$
    select
        p.outcome,
        case when profile = 'stripe' then p.stripe_status else p.status end,
        case when profile = 'stripe' then coalesce(p.stripe_code, p.code) else p.code end,
        p.title,
        p.detail,
        p.stripe_type
    from (
        values
        (
            'missing', 400, 400, 'idempotency_key_missing', null, 'invalid_request_error',
            'Idempotency key missing',
            'This operation needs an Idempotency-Key header: one key for each operation, the same on every attempt.'
        ),
        (
            'invalid', 400, 400, 'idempotency_key_invalid', null, 'invalid_request_error',
            'Idempotency key invalid',
            'The Idempotency-Key header is one string, quoted or bare, that this resource accepts as a key.'
        ),
        (
            'mismatch', 422, 400, 'idempotency_key_reused', null, 'idempotency_error',
            'Idempotency key reused',
            'This key belongs to another request. An attempt repeats the request exactly; another operation, or a'
            ' corrected request, takes a new key.'
        ),
        (
            'in_progress', 409, 409, 'idempotency_request_in_progress', 'idempotency_key_in_use', 'idempotency_error',
            'Request in progress',
            'Another attempt with this key is at work. Try again later, with the same key.'
        ),
        (
            'unresolved', 409, 409, 'idempotency_outcome_unknown', null, 'idempotency_error',
            'Outcome unknown',
            'An earlier attempt with this key stopped half-way, and what it did is not known yet. Try again later, with'
            ' the same key; a new key could do it twice.'
        ),
        (
            'expired', 410, 410, 'idempotency_key_expired', null, 'idempotency_error',
            'Idempotency key expired',
            'This key was used too long ago, and its answer is gone. A new operation takes a new key.'
        )
    ) as p (outcome, status, stripe_status, code, stripe_code, stripe_type, title, detail)
$$;

comment on function idem_private.http_problems(text) is
'Status, code and texts of every outcome that is answered by a problem, in the dialect of a profile.';

revoke all on function idem_private.http_problems(text) from public;

-- sql/private/http_problem.sql
create or replace function idem_private.http_problem(
    outcome text, settings idem_private.policy, mismatched text[], retry_after interval
) returns idem.response
language plpgsql stable as $$
declare
    max_named constant int := 20;
    problem record;
    document jsonb;
    named jsonb := jsonb_build_object();
    media_type text;
begin
    select p.* into strict problem
    from idem_private.http_problems(settings.profile) as p
    where p.outcome = http_problem.outcome;

    if http_problem.outcome = 'mismatch' then
        http_problem.mismatched := case
            when coalesce(cardinality(http_problem.mismatched), 0) = 0 then array['body'] else http_problem.mismatched
        end;
        named := jsonb_build_object(
            'mismatched', to_jsonb(http_problem.mismatched[:max_named]),
            'mismatched_count', cardinality(http_problem.mismatched)
        );
    end if;
    if settings.profile = 'stripe' then
        media_type := 'application/json';
        document := jsonb_build_object(
            'error', jsonb_build_object('type', problem.stripe_type, 'code', problem.code, 'message', problem.detail)
            || named
        );
    else
        media_type := 'application/problem+json';
        document := jsonb_build_object(
            'type', coalesce(settings.problem_type_base || problem.code, 'about:blank'),
            'title', problem.title,
            'status', problem.status,
            'detail', problem.detail,
            'code', problem.code
        ) || named;
    end if;
    return row(
        problem.status,
        jsonb_build_array(jsonb_build_array('Content-Type', media_type))
        || case
            when http_problem.retry_after is null then '[]'
            else jsonb_build_array(
                jsonb_build_array('Retry-After', ceil(extract(epoch from http_problem.retry_after))::bigint::text)
            )
        end,
        convert_to(document::text, 'UTF8')
    )::idem.response;
end
$$;

comment on function idem_private.http_problem(text, idem_private.policy, text[], interval) is
'The answer to a request that is neither to be done nor replayed.';

revoke all on function idem_private.http_problem(text, idem_private.policy, text[], interval) from public;

-- sql/private/replay_header.sql
create or replace function idem_private.replay_header(settings idem_private.policy) returns text
language sql immutable as $$
    select
        coalesce(
            settings.replay_header,
            case settings.profile when 'stripe' then 'Idempotent-Replayed' else 'Idempotency-Replayed' end
        )
$$;

comment on function idem_private.replay_header(idem_private.policy) is 'Name of the header that marks a replay.';

revoke all on function idem_private.replay_header(idem_private.policy) from public;

-- sql/private/stored_headers.sql
-- What belongs to one connection or one answer is not stored, whether the policy names it or a Connection header does;
-- nor are the marks of a replay, which are ours to set.
create or replace function idem_private.stored_headers(headers jsonb, settings idem_private.policy) returns jsonb
language plpgsql immutable as $$
declare
    dropped text[] := settings.drop_headers
        || array['idempotency-body-omitted', lower(idem_private.replay_header(settings) collate "C")];
begin
    if stored_headers.headers is null then
        return null;
    end if;
    if jsonb_path_exists(stored_headers.headers, '$[*][0] ? (@ like_regex "^connection$" flag "i")') then
        dropped := dropped || array(
            select lower(btrim(n.name, E' \t') collate "C")
            from jsonb_array_elements(stored_headers.headers) as h (pair)
            cross join lateral unnest(string_to_array(h.pair ->> 1, ',')) as n (name)
            where lower((h.pair ->> 0) collate "C") = 'connection'
        );
    end if;
    return (
        select coalesce(jsonb_agg(h.pair order by h.position), '[]')
        from jsonb_array_elements(stored_headers.headers) with ordinality as h (pair, position)
        where lower((h.pair ->> 0) collate "C") <> all(dropped)
    );
end
$$;

comment on function idem_private.stored_headers(jsonb, idem_private.policy) is
'The headers of an answer that a replay repeats, in order.';

revoke all on function idem_private.stored_headers(jsonb, idem_private.policy) from public;

-- sql/private/check_answer.sql
create or replace function idem_private.check_answer(status int, headers jsonb) returns void
language plpgsql immutable as $$
begin
    if coalesce(check_answer.status not between 100 and 999, true) then
        raise exception using
            errcode = '22023',
            message = 'the status of an answer has three digits',
            detail = jsonb_build_object('code', 'status_out_of_range', 'argument', 'status')::text,
            hint = 'Pass the HTTP status that is sent, from 100 to 999.';
    end if;
    if not idem_private.headers_are_pairs(check_answer.headers) then
        perform idem_private.refuse_headers();
    end if;
    if jsonb_path_exists(
        check_answer.headers,
        'strict $[*] ? (!(@[0] like_regex "^[-!#$%&''*+.^_`|~0-9A-Za-z]+$") || @[1] like_regex "[\r\n]")'
    ) then
        raise exception using
            errcode = '22023',
            message = 'a header cannot be sent',
            detail = jsonb_build_object('code', 'header_unfit', 'argument', 'headers')::text,
            hint = 'The name of a header is a token (RFC 9110), and its value has no line breaks.';
    end if;
end
$$;

comment on function idem_private.check_answer(int, jsonb) is 'Raises 22023 for an answer that HTTP cannot carry.';

revoke all on function idem_private.check_answer(int, jsonb) from public;

-- sql/private/refuse_policy.sql
create or replace function idem_private.refuse_policy(name text, problem text) returns void
language plpgsql stable as $$
begin
    raise exception using
        errcode = '22023',
        message = format('policy %L: %s', left(refuse_policy.name, 100), refuse_policy.problem),
        detail = jsonb_build_object(
            'code', 'policy_invalid', 'column', split_part(refuse_policy.problem, ':', 1)
        )::text,
        hint = 'The columns of idem.policies are described in the SQL reference.';
end
$$;

comment on function idem_private.refuse_policy(text, text) is
'Raises 22023 for a policy that cannot work; the problem begins with its column.';

revoke all on function idem_private.refuse_policy(text, text) from public;

-- sql/private/check_policy.sql
-- Every policy that could not work is refused when it is written, by its own name, rather than at some later call. Here
-- each column by itself: an upsert comes by with the defaults of what it does not name, and may then write another row.
create or replace function idem_private.check_policy() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    token constant text := '^[!#$%&''*+.^_`|~0-9A-Za-z-]+$';
    uri constant text := '^[A-Za-z][A-Za-z0-9+.-]*:([!$&-;=?-Z_a-z~#\[\]]|%[0-9A-Fa-f]{2})+$';
    max_pattern constant int := 1000;
    problem text;
    unfit text;
begin
    -- The first binding writes to every policy, so one that an old snapshot does not show raises 40001 here.
    if tg_op = 'INSERT' and current_setting('transaction_isolation') <> 'read committed' then
        perform from idem_private.policy as p where p.name = 'default' for share;
    end if;
    new.scopes_bound := exists (select from idem_private.scope_binding);
    problem := case
        when new.name is null or new.name = '' then 'name: a policy needs a name'
        when length(new.name) > 100 or new.name collate "C" ~ '[\x01-\x1f\x7f-\x9f]'
            then 'name: at most 100 characters, no control characters'
        when tg_op = 'UPDATE' and new.name <> old.name then 'name: a policy cannot be renamed, its keys remember it'
        when new.on_lapse is null or new.on_lapse not in ('hold', 'retry') then 'on_lapse: hold or retry'
        when new.profile is null or new.profile not in ('ietf', 'stripe') then 'profile: ietf or stripe'
        when new.max_attempts < 1 then 'max_attempts: at least 1, or null for no limit'
        when new.max_claims < 1 then 'max_claims: at least 1'
        when new.max_batch < 1 then 'max_batch: at least 1'
        when new.max_body_bytes < 0 then 'max_body_bytes: at least 0; 0 stores no body'
        when least(new.key_min_length, new.key_max_length) < 1 or greatest(new.key_min_length, new.key_max_length) > 1024
            then 'key_min_length, key_max_length: 1 <= min <= max <= 1024'
        when exists (select from unnest(new.methods) as m where (m collate "C" ~ token) is not true)
            then 'methods: names of HTTP methods'
        when array_position(new.release_statuses, null) is not null
            or exists (select from unnest(new.release_statuses) as s where s not between 100 and 599)
            then 'release_statuses: HTTP statuses from 100 to 599'
        when exists (select from unnest(new.drop_headers) as h where (h collate "C" ~ token) is not true)
            then 'drop_headers: names of HTTP headers'
        when exists (
            select from unnest(new.ignore || new.include) as pointer
            where pointer is null or pointer collate "C" !~ '^(/([^~]|~[01])*)?$'
        ) then 'ignore, include: JSON pointers (RFC 6901), such as /order/id'
        when new.replay_header collate "C" !~ token then 'replay_header: the name of an HTTP header'
        when new.problem_type_base collate "C" !~ uri or length(new.problem_type_base) > 1000
            then 'problem_type_base: the beginning of a URI, such as https://api.example/problems/'
        when length(new.key_pattern) > max_pattern then format('key_pattern: at most %s characters', max_pattern)
        -- With them the time that a match takes is not bounded.
        when new.key_pattern collate "C" ~ '(^|[^\\])(\\\\)*\\[1-9]' then 'key_pattern: no back references'
    end;

    if problem is null then
        select required.key || ': must not be null' into problem
        from jsonb_each(to_jsonb(new)) as required
        where required.value = 'null' and required.key not in (
            'max_attempts', 'key_pattern', 'ignore', 'include', 'problem_type_base', 'replay_header'
        )
        order by required.key
        limit 1;
    end if;

    if problem is null then
        select length.name into unfit
        from (values
            (1, 'ttl', new.ttl), (2, 'lease', new.lease), (3, 'retry_after', new.retry_after),
            (4, 'min_retention', new.min_retention)
        ) as length (position, name, value)
        where not isfinite(length.value) or length.value <= interval '0' or length.value > interval '36500 days'
        order by length.position
        limit 1;
        if found then
            problem := unfit || ': above zero and at most 36500 days';
        elsif not isfinite(new.tombstone) or new.tombstone < interval '0' or new.tombstone > interval '36500 days' then
            problem := 'tombstone: from zero to 36500 days';
        end if;
    end if;

    if problem is null and new.key_pattern is not null then
        begin
            perform '' collate "C" ~ new.key_pattern;
        exception when invalid_regular_expression then
            problem := 'key_pattern: ' || sqlerrm;
        end;
    end if;

    if problem is not null then
        perform idem_private.refuse_policy(new.name, problem);
    end if;

    new.ttl := idem_private.exact_interval(new.ttl);
    new.lease := idem_private.exact_interval(new.lease);
    new.retry_after := idem_private.exact_interval(new.retry_after);
    new.min_retention := idem_private.exact_interval(new.min_retention);
    new.tombstone := idem_private.exact_interval(new.tombstone);
    new.methods := array(
        select upper(m.name) from unnest(new.methods) with ordinality as m (name, position) order by m.position
    );
    new.drop_headers := array(
        select lower(h.name) from unnest(new.drop_headers) with ordinality as h (name, position) order by h.position
    );
    return new;
end
$$;

comment on function idem_private.check_policy() is 'Raises 22023 for a policy that cannot work; makes its intervals exact.';

revoke all on function idem_private.check_policy() from public;

create or replace trigger check_policy before insert or update on idem_private.policy
for each row execute function idem_private.check_policy();

-- sql/private/check_whole_policy.sql
-- What columns mean to each other, of the row as it has been written.
create or replace function idem_private.check_whole_policy() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if new.key_min_length > new.key_max_length then
        perform idem_private.refuse_policy(
            new.name, 'key_min_length, key_max_length: 1 <= min <= max <= 1024'
        );
    elsif new.ttl <= new.lease then
        perform idem_private.refuse_policy(new.name, 'ttl: must be longer than lease');
    end if;
    return null;
end
$$;

comment on function idem_private.check_whole_policy() is 'Raises 22023 for a policy that contradicts itself.';

revoke all on function idem_private.check_whole_policy() from public;

create or replace trigger check_whole_policy after insert or update on idem_private.policy
for each row execute function idem_private.check_whole_policy();

-- sql/private/retire_policy.sql
create or replace function idem_private.retire_policy() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if old.name in ('default', 'messages') then
        raise exception using
            errcode = '22023',
            message = format('policy %L belongs to pyidem and cannot be deleted', old.name),
            detail = jsonb_build_object('code', 'policy_shipped', 'policy', old.name)::text,
            hint = 'Update its columns instead.';
    end if;
    if exists (select from idem_private.reservation as r where r.policy = old.name) then
        raise exception using
            errcode = '23503',
            message = format('policy %L is in use', old.name),
            detail = jsonb_build_object('code', 'policy_in_use', 'policy', old.name)::text,
            hint = 'Keys remember their policy until they are purged. Let them expire first.';
    end if;
    insert into idem_private.retired_policy
    select p.* from idem_private.policy as p where p.name = old.name
    on conflict (name) do nothing;
    return old;
end
$$;

comment on function idem_private.retire_policy() is
'Refuses the deletion of a shipped policy, or of one in use; keeps the settings for a reservation under way.';

revoke all on function idem_private.retire_policy() from public;

create or replace trigger retire_policy before delete on idem_private.policy
for each row execute function idem_private.retire_policy();

-- sql/private/revive_policy.sql
create or replace function idem_private.revive_policy() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from idem_private.retired_policy as p where p.name = new.name;
    return null;
end
$$;

comment on function idem_private.revive_policy() is 'A policy made again under an old name replaces the retired one.';

revoke all on function idem_private.revive_policy() from public;

create or replace trigger revive_policy after insert on idem_private.policy
for each row execute function idem_private.revive_policy();

-- sql/private/write_policy.sql
-- The trigger of the view idem.policies on a Citus cluster, where idem_private.policy has none: see idem.distribute.
-- What is written is judged and made exact by the trigger of the draft, which is an ordinary table.
create or replace function idem_private.write_policy() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    written idem_private.policy;
begin
    if tg_op = 'DELETE' then
        delete from idem_private.policy as p where p.name = old.name;
        return old;
    end if;
    if tg_op = 'UPDATE' and new.name is distinct from old.name then
        raise exception using
            errcode = '22023',
            message = format('policy %L: a policy cannot be renamed, its keys remember it', left(old.name, 100)),
            detail = jsonb_build_object('code', 'policy_invalid', 'column', 'name')::text,
            hint = 'The columns of idem.policies are described in the SQL reference.';
    end if;
    insert into idem_private.policy_draft select new.*, false returning * into written;
    delete from idem_private.policy_draft;
    if tg_op = 'UPDATE' then
        delete from idem_private.policy as p where p.name = new.name;
    end if;
    insert into idem_private.policy select written.*;
    return new;
end
$$;

comment on function idem_private.write_policy() is 'Writes a policy on a Citus cluster.';

revoke all on function idem_private.write_policy() from public;

-- sql/private/refuse_without_citus.sql
create or replace function idem_private.refuse_without_citus() returns void
language plpgsql stable as $$
declare
    coordinator boolean;
begin
    if not exists (select from pg_catalog.pg_extension as e where e.extname = 'citus') then
        raise exception using
            errcode = '0A000',
            message = 'Citus is not installed in this database',
            detail = jsonb_build_object('code', 'no_citus')::text,
            hint = 'Run this on the coordinator of a Citus cluster; on a single server there is nothing to distribute.';
    end if;
    execute 'select pg_catalog.citus_is_coordinator()' into coordinator;
    if not coordinator then
        raise exception using
            errcode = '0A000',
            message = 'this is not the coordinator of the Citus cluster',
            detail = jsonb_build_object('code', 'not_the_coordinator')::text,
            hint = 'Run this on the coordinator, which creates what the workers need.';
    end if;
end
$$;

comment on function idem_private.refuse_without_citus() is 'Raises 0A000 anywhere but on the coordinator of a Citus cluster.';

revoke all on function idem_private.refuse_without_citus() from public;

-- sql/private/rights.sql
-- The one place that says which grant gives what. A new function, procedure or view of schema idem is one line here:
-- its name, the privileges, and the grants that give them; none for what is the owner's alone. A helper that a public
-- view calls is one too. Roles that hold a grant get what was added at the end of an upgrade: see renew_access.
create or replace function idem_private.rights() returns table (object text, privileges text, given_by text[])
language sql immutable as $$
    select r.object, r.privileges, string_to_array(r.given_by, ', ')
    from (values
        ('idem.reserve', 'execute', 'client, operator'),
        ('idem.complete', 'execute', 'client, resolver, operator'),
        ('idem.release', 'execute', 'client, resolver, operator'),
        ('idem.defer', 'execute', 'client, resolver, operator'),
        ('idem.extend', 'execute', 'client, resolver, operator'),
        ('idem.checkpoint', 'execute', 'client, resolver, operator'),
        ('idem.lookup', 'execute', 'client, resolver, operator'),
        ('idem.downstream_key', 'execute', 'client, resolver, operator'),
        ('idem.run', 'execute', 'client, operator'),
        ('idem.json_response', 'execute', 'client, operator'),
        ('idem.run_begin', 'execute', 'client, operator'),
        ('idem.run_end', 'execute', 'client, operator'),
        ('idem.once', 'execute', 'client, operator'),
        ('idem.once_many', 'execute', 'client, operator'),
        ('idem.once_undo', 'execute', 'client, operator'),
        ('idem.fingerprint', 'execute', 'client, operator'),
        ('idem.fingerprint_fields', 'execute', 'client, operator'),
        ('idem.http_reserve', 'execute', 'client, operator'),
        ('idem.http_complete', 'execute', 'client, resolver, operator'),
        ('idem.policy_document', 'execute', 'client, operator'),
        ('idem.version', 'execute', 'client, resolver, monitor, operator'),
        ('idem.health', 'execute', 'monitor, operator'),
        ('idem.stats', 'execute', 'monitor, operator'),
        ('idem.purge_state', 'execute', 'monitor, operator'),
        ('idem.claim_lapsed', 'execute', 'resolver, operator'),
        ('idem.resolve', 'execute', 'operator'),
        ('idem.history', 'execute', 'operator'),
        ('idem.purge', 'execute', 'operator'),
        ('idem.purge_all', 'execute', 'operator'),
        ('idem.schedule', 'execute', 'operator'),
        ('idem.unschedule', 'execute', 'operator'),
        ('idem.forget', 'execute', 'operator'),
        ('idem.policies', 'select, insert, update, delete', 'operator'),
        ('idem.grant_client', 'execute', ''),
        ('idem.grant_resolver', 'execute', ''),
        ('idem.grant_monitor', 'execute', ''),
        ('idem.grant_operator', 'execute', ''),
        ('idem.revoke_access', 'execute', ''),
        ('idem.bind_scope', 'execute', ''),
        ('idem.unbind_scope', 'execute', ''),
        ('idem.enable_testing', 'execute', ''),
        ('idem.disable_testing', 'execute', ''),
        ('idem.distribute', 'execute', 'operator'),
        ('idem.keys', 'select', 'monitor, operator'),
        ('idem_private.reader', 'execute', 'monitor, operator'),
        ('idem_private.is_within', 'execute', 'monitor, operator')
    ) as r (object, privileges, given_by)
$$;

comment on function idem_private.rights() is
'Which grant (client, resolver, monitor, operator) gives which privileges on which object.';

revoke all on function idem_private.rights() from public;

-- sql/private/check_role.sql
create or replace function idem_private.check_role(role name) returns void
language plpgsql stable as $$
begin
    if not exists (select from pg_catalog.pg_roles as r where r.rolname = check_role.role collate "C") then
        raise exception using
            errcode = '42704',
            message = format('there is no role %s', coalesce(quote_ident(check_role.role), 'null')),
            detail = jsonb_build_object('code', 'no_such_role', 'role', check_role.role)::text,
            hint = 'Roles are made by the administrator of the server: CREATE ROLE.';
    end if;
end
$$;

comment on function idem_private.check_role(name) is 'Raises 42704 where there is no such role.';

revoke all on function idem_private.check_role(name) from public;

-- sql/private/give_access.sql
-- Two sessions that change the rights of one object at once would meet an internal error, so they take turns, and a
-- migration is one of them.
create or replace function idem_private.give_access(role name, given text) returns void
language plpgsql volatile as $$
declare
    allowed record;
begin
    perform idem_private.check_role(give_access.role);
    perform pg_advisory_xact_lock(hashtextextended('pyidem.migrate', 0));
    execute format('grant usage on schema idem to %I', give_access.role);
    for allowed in
        select
            r.privileges,
            case
                when r.privileges = 'execute' then 'routine ' || r.object::regproc::regprocedure
                else 'table ' || r.object::regclass
            end as object
        from idem_private.rights() as r
        where give_access.given = any(r.given_by)
    loop
        execute format('grant %s on %s to %I', allowed.privileges, allowed.object, give_access.role);
    end loop;
    insert into idem_private.access (role, given)
    values (quote_ident(give_access.role)::regrole, give_access.given)
    on conflict do nothing;
end
$$;

comment on function idem_private.give_access(name, text) is 'Gives a role what a grant gives, and remembers that it did.';

revoke all on function idem_private.give_access(name, text) from public;

-- sql/private/renew_access.sql
create or replace function idem_private.renew_access() returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select idem_private.give_access(r.rolname, a.given)
    from idem_private.access as a
    inner join pg_catalog.pg_roles as r on a.role = r.oid;
$$;

comment on function idem_private.renew_access() is
'Gives every role that holds a grant what an upgrade has added to it; at the end of every migration.';

revoke all on function idem_private.renew_access() from public;

-- sql/private/granted_objects.sql
create or replace function idem_private.granted_objects(role name) returns setof text
language sql stable as $$
    select distinct o.kind || ' ' || o.name
    from (
        select 'schema' as kind, n.oid::regnamespace::text as name, n.nspacl as acl, n.oid as schema
        from pg_catalog.pg_namespace as n
        union all
        select 'routine', p.oid::regprocedure::text, p.proacl, p.pronamespace
        from pg_catalog.pg_proc as p
        union all
        select 'table', c.oid::regclass::text, c.relacl, c.relnamespace
        from pg_catalog.pg_class as c
        union all
        select 'table', c.oid::regclass::text, a.attacl, c.relnamespace
        from pg_catalog.pg_class as c
        inner join pg_catalog.pg_attribute as a on c.oid = a.attrelid
        union all
        select 'type', t.oid::regtype::text, t.typacl, t.typnamespace
        from pg_catalog.pg_type as t
    ) as o
    cross join lateral aclexplode(o.acl) as granted
    inner join pg_catalog.pg_roles as r on granted.grantee = r.oid
    where o.schema in ('idem'::regnamespace, 'idem_private'::regnamespace) and r.rolname = granted_objects.role
$$;

comment on function idem_private.granted_objects(name) is
'What a role has been granted, by anybody: schemas, routines, tables, views and types, as GRANT names them.';

revoke all on function idem_private.granted_objects(name) from public;

-- sql/private/note_purge.sql
-- The row is skipped where another purge has it: whoever does less waiting does more purging.
create or replace function idem_private.note_purge(
    started_at timestamptz, continued boolean, removed bigint, caught_up boolean
) returns boolean
language plpgsql volatile as $$
#variable_conflict use_column
declare
    last idem_private.last_purge;
    at constant timestamptz := idem_private.clock();
begin
    select p.* into last from idem_private.last_purge as p for update skip locked;
    if not found then
        return false;
    end if;
    update idem_private.last_purge as p
    set
        started_at = case when note_purge.continued then last.started_at else note_purge.started_at end,
        ended_at = at,
        removed = case when note_purge.continued then last.removed else 0 end + note_purge.removed,
        caught_up = note_purge.caught_up;
    return last.ended_at is null or date_trunc('hour', last.ended_at) <> date_trunc('hour', at);
end
$$;

comment on function idem_private.note_purge(timestamptz, boolean, bigint, boolean) is
'Records what a batch did, unless another is recording. True: the first record of this hour.';

revoke all on function idem_private.note_purge(timestamptz, boolean, bigint, boolean) from public;

-- sql/private/check_max_rows.sql
create or replace function idem_private.check_max_rows(max_rows int) returns int
language plpgsql stable as $$
declare
    most constant int := coalesce(check_max_rows.max_rows, 10000);
begin
    if most not between 1 and 1000000 then
        raise exception using
            errcode = '22023',
            message = 'max_rows must be from 1 to 1000000',
            detail = jsonb_build_object('code', 'max_rows_out_of_range', 'argument', 'max_rows', 'limit', 1000000)::text,
            hint = 'A batch is one transaction; idem.purge_all runs as many as there is work for.';
    end if;
    return most;
end
$$;

comment on function idem_private.check_max_rows(int) is 'The size of a batch of purge; raises 22023.';

revoke all on function idem_private.check_max_rows(int) from public;

-- sql/private/cron_version.sql
-- The extension makes its schema itself, so where it is installed, nobody else has made a schema cron for us to call.
create or replace function idem_private.cron_version() returns int[]
language sql stable as $$
    select string_to_array(substring(e.extversion from '^[0-9.]*[0-9]'), '.')::int[]
    from pg_catalog.pg_extension as e
    where e.extname = 'pg_cron'
$$;

comment on function idem_private.cron_version() is 'Version of pg_cron in this database, {1,4}; null: there is none.';

revoke all on function idem_private.cron_version() from public;

-- sql/private/cron_period.sql
-- A run must be over before the next one is due. Of a schedule in cron's syntax only what is certain without a calendar
-- is said; whoever writes something more artful is given a minute.
create or replace function idem_private.cron_period(schedule text) returns interval
language sql immutable as $$
    select
        case
            when schedule ~* '^\s*\d{1,2}\s+seconds?\s*$'
                then make_interval(secs => substring(schedule from '\d+')::double precision)
            when schedule ~ '^\s*\d+\s+\d+\s' then interval '1 day'
            when schedule ~ '^\s*\d+\s' then interval '1 hour'
            when schedule ~ '^\s*\*/(2|3|4|5|6|10|12|15|20|30)\s'
                then make_interval(mins => substring(schedule from '\d+')::int)
            else interval '1 minute'
        end
$$;

comment on function idem_private.cron_period(text) is 'The least time between two runs of a schedule, or less.';

revoke all on function idem_private.cron_period(text) from public;

-- sql/private/purge_jobs.sql
-- pg_cron shows each role its own jobs, and a superuser all of them.
create or replace function idem_private.purge_jobs()
returns table (jobid bigint, jobname text, username text, active boolean)
language plpgsql stable as $$
begin
    if idem_private.cron_version() is null or not has_schema_privilege('cron', 'USAGE') then
        return;
    end if;
    return query execute
        'select j.jobid, j.jobname::text, j.username, j.active from cron.job as j
        where j.database = $1 and j.command ~* ''^\s*call\s+idem\.purge_all\M''
        order by j.jobid'
    using current_database();
end
$$;

comment on function idem_private.purge_jobs() is
'Jobs of pg_cron that purge this database, as far as the owner can see them.';

revoke all on function idem_private.purge_jobs() from public;

-- sql/private/refuse_without_cron.sql
create or replace function idem_private.refuse_without_cron(job_name text, schedule text, command text) returns void
language plpgsql stable as $$
declare
    statement constant text := format(
        'select cron.schedule_in_database(%L, %L, %L, %L);',
        refuse_without_cron.job_name, refuse_without_cron.schedule, refuse_without_cron.command, current_database()
    );
    -- What purge does by itself where it finds pg_cron beside it.
    trim_runs constant text := format(
        'select cron.schedule(%L, ''0 * * * *'', %L);',
        (refuse_without_cron.job_name || ', old runs')::name,
        format(
            'delete from cron.job_run_details where database = %L and command like %L and end_time < now() - interval %L',
            current_database(), 'call idem.purge_all(%', '7 days'
        )
    );
begin
    raise exception using
        errcode = '0A000',
        message = 'pg_cron is not installed in this database',
        detail = jsonb_build_object(
            'code', 'no_pg_cron', 'statements', jsonb_build_array(statement, trim_runs)
        )::text,
        hint = format(
            'Where another database of this server has it, run there, as a role that may call idem.purge_all here: '
            '%s %s Without pg_cron: pyidem purge --every 60.', statement, trim_runs
        );
end
$$;

comment on function idem_private.refuse_without_cron(text, text, text) is
'Raises 0A000 with the statements that schedule a job from the database that has pg_cron.';

revoke all on function idem_private.refuse_without_cron(text, text, text) from public;

-- sql/private/trim_job_runs.sql
create or replace function idem_private.trim_job_runs() returns void
language plpgsql volatile as $$
declare
    kept constant interval := interval '7 days';
begin
    if idem_private.cron_version() is null or not has_schema_privilege('cron', 'USAGE') then
        return;
    end if;
    -- Older releases have no such table.
    if exists (
        select from pg_catalog.pg_class as c
        where c.relnamespace = (select n.oid from pg_catalog.pg_namespace as n where n.nspname = 'cron')
            and c.relname = 'job_run_details'
            and has_table_privilege(c.oid, 'SELECT') and has_table_privilege(c.oid, 'DELETE')
    ) then
        execute
            'delete from cron.job_run_details as d
            where d.database = current_database() and d.username = current_user
                and d.command ~* ''^\s*call\s+idem\.purge_all\M'' and coalesce(d.end_time, d.start_time) < $1'
        using idem_private.clock() - kept;
    end if;
end
$$;

comment on function idem_private.trim_job_runs() is
'Deletes what pg_cron has recorded of runs of the owner''s own purge jobs that are seven days old.';

revoke all on function idem_private.trim_job_runs() from public;

-- sql/private/purge_nodes.sql
-- idem.purge where rows cannot be locked across scopes: a look at what is due on all nodes locks nothing, and then each
-- scope is purged for itself. Events go the same way.
create or replace function idem_private.purge_nodes(max_rows int, prefixes text[]) returns bigint
language plpgsql volatile as $$
declare
    at constant timestamptz := idem_private.clock();
    batch record;
    rows int := 0;
    removed bigint := bigint '0';
    caught_up boolean;
begin
    for batch in
        select due.scope, array_agg(due.key) as keys
        from (
            select r.scope, r.key
            from idem_private.reservation as r
            where coalesce(r.purge_at, r.expires_at) <= at
                and (purge_nodes.prefixes is null or idem_private.is_within(r.scope, purge_nodes.prefixes))
            order by coalesce(r.purge_at, r.expires_at)
            limit purge_nodes.max_rows
        ) as due
        group by due.scope
    loop
        rows := rows + cardinality(batch.keys);
        removed := removed + idem_private.purge_scope(batch.scope, batch.keys, at);
    end loop;
    caught_up := rows < purge_nodes.max_rows
        and idem_private.purge_events_of_nodes(purge_nodes.max_rows) < purge_nodes.max_rows;
    perform set_config(
        'idem_private.purge_reached', case when caught_up then '' else to_jsonb(at) #>> '{}' end, true
    );
    if purge_nodes.prefixes is null and idem_private.note_purge(
        at, coalesce(current_setting('idem_private.purge_from', true), '') <> '', removed, caught_up
    ) then
        perform idem_private.trim_job_runs();
    end if;
    return removed;
end
$$;

comment on function idem_private.purge_nodes(int, text[]) is 'idem.purge on a Citus cluster.';

revoke all on function idem_private.purge_nodes(int, text[]) from public;

-- sql/private/present_objects.sql
-- A dump restored on another version of PostgreSQL must not look changed. What is read here is the same on every
-- version, but for the text of a view, which the server prints in its own way: its key names the version, and drift
-- compares only keys that both sides have. Left out is what an administrator may well set: grants to roles, storage
-- parameters of tables. The rows of extensions are theirs, only the extension itself is listed.
create or replace function idem_private.present_objects() returns setof idem_private.object
language sql stable
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set quote_all_identifiers = off
as $$
with schemas as (
    select n.* from pg_namespace as n where n.nspname in ('idem', 'idem_private')
),

contained as (
    select s.nspname, s.nspowner, d.classid, d.objid
    from schemas as s
    inner join pg_depend as d on d.refclassid = 'pg_namespace'::regclass and d.refobjid = s.oid and d.deptype = 'n'
    where not exists (
        select from pg_depend as e where e.classid = d.classid and e.objid = d.objid and e.deptype = 'e'
    )
),

-- A composite type has its columns in pg_class, as a table has.
relations as (
    select r.*, c.nspowner, format('%I.%I', c.nspname, r.relname) as identity
    from contained as c
    inner join pg_class as r
        on c.classid = 'pg_class'::regclass and r.oid = c.objid
        or c.classid = 'pg_type'::regclass and r.reltype = c.objid and r.relkind = 'c'
    where r.relkind not in ('i', 'I', 't')
),

listed as (
    select
        'pg_namespace'::regclass as classid, s.oid as objid, 0 as objsubid, null as name, null as part_of,
        jsonb_build_object(
            'granted to public', exists (select from aclexplode(s.nspacl) as a where a.grantee = 0)
        ) as definition
    from schemas as s

    union all
    select
        -- pg_identify_object writes some types in another way since version 18
        c.classid, p.oid, 0, format('%I.%I(%s)', c.nspname, p.proname, oidvectortypes(p.proargtypes)), null,
        jsonb_build_object(
            'kind', p.prokind, 'language', l.lanname, 'body', md5(p.prosrc), 'settings', p.proconfig,
            'arguments', pg_get_function_arguments(p.oid), 'result', pg_get_function_result(p.oid),
            'volatility', p.provolatile, 'parallel', p.proparallel, 'strict', p.proisstrict,
            'security definer', p.prosecdef, 'leakproof', p.proleakproof, 'cost', p.procost, 'rows', p.prorows,
            'owned by the owner of the schema', p.proowner = c.nspowner,
            'granted to public', exists (
                select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a where a.grantee = 0
            )
        )
    from contained as c
    inner join pg_proc as p on c.classid = 'pg_proc'::regclass and p.oid = c.objid
    inner join pg_language as l on l.oid = p.prolang

    union all
    select
        'pg_class'::regclass, r.oid, 0, null, null,
        jsonb_build_object(
            'persistence', r.relpersistence,
            'row security', r.relrowsecurity,
            'row security for the owner', r.relforcerowsecurity,
            'owned by the owner of the schema', r.relowner = r.nspowner,
            'granted to public', exists (select from aclexplode(r.relacl) as a where a.grantee = 0)
        )
        || case
            when r.relkind in ('v', 'm') then jsonb_build_object(
                'options', r.reloptions,
                'query on ' || current_setting('server_version_num')::int / 10000, md5(pg_get_viewdef(r.oid))
            )
            else '{}'
        end
    from relations as r
    where r.relkind <> 'c'

    union all
    select
        c.classid, t.oid, 0, null, null,
        jsonb_build_object(
            'kind', t.typtype, 'base', format_type(t.typbasetype, t.typtypmod), 'not null', t.typnotnull,
            'labels', array(select e.enumlabel from pg_enum as e where e.enumtypid = t.oid order by e.enumsortorder)
        )
    from contained as c
    inner join pg_type as t on c.classid = 'pg_type'::regclass and t.oid = c.objid

    union all
    select
        'pg_class'::regclass, r.oid, a.attnum, null, r.identity,
        jsonb_build_object(
            'type', format_type(a.atttypid, a.atttypmod), 'collation', a.attcollation::regcollation::text,
            'not null', a.attnotnull, 'default', pg_get_expr(d.adbin, d.adrelid),
            'identity', a.attidentity, 'generated', a.attgenerated
        )
    from relations as r
    inner join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum

    union all
    select
        'pg_class'::regclass, i.indexrelid, 0, null, r.identity,
        jsonb_build_object('definition', pg_get_indexdef(i.indexrelid), 'valid', i.indisvalid)
    from relations as r
    inner join pg_index as i on i.indrelid = r.oid

    union all
    -- Since version 18 there is one for each NOT NULL too; constraint triggers are listed as triggers.
    select
        'pg_constraint'::regclass, c.oid, 0, null, r.identity,
        jsonb_build_object('definition', pg_get_constraintdef(c.oid), 'valid', c.convalidated)
    from relations as r
    inner join pg_constraint as c on c.conrelid = r.oid and c.contype not in ('n', 't')

    union all
    select
        'pg_trigger'::regclass, t.oid, 0, null, r.identity,
        jsonb_build_object('definition', pg_get_triggerdef(t.oid), 'enabled', t.tgenabled)
    from relations as r
    inner join pg_trigger as t on t.tgrelid = r.oid and not t.tgisinternal

    union all
    -- Of these there are none of ours.
    select 'pg_rewrite'::regclass, w.oid, 0, null, r.identity, '{}'
    from relations as r
    inner join pg_rewrite as w on w.ev_class = r.oid and w.rulename <> '_RETURN'

    union all
    select 'pg_policy'::regclass, p.oid, 0, null, r.identity, '{}'
    from relations as r
    inner join pg_policy as p on p.polrelid = r.oid

    union all
    select c.classid, c.objid, 0, null, null, '{}'
    from contained as c
    where c.classid not in ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass)
)

select i.type, coalesce(l.name, i.identity), l.part_of, l.definition
from listed as l
cross join lateral pg_identify_object(l.classid, l.objid, l.objsubid) as i
$$;

comment on function idem_private.present_objects() is 'Everything that is in both schemas now, as idem_private.object records it.';

revoke all on function idem_private.present_objects() from public;

-- sql/private/record_objects.sql
create or replace function idem_private.record_objects() returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    delete from idem_private.object;
    insert into idem_private.object select * from idem_private.present_objects();
$$;

comment on function idem_private.record_objects() is 'Takes what both schemas hold now for what they should hold; the last step of every migration.';

revoke all on function idem_private.record_objects() from public;

-- sql/private/drift.sql
-- What belongs to a relation that is missing or extra as a whole is not named beside it.
create or replace function idem_private.drift() returns table (object text, problem text, detail text)
language sql stable set search_path = pg_catalog, pg_temp as $$
with compared as (
    select
        coalesce(r.kind, p.kind) as kind,
        coalesce(r.name, p.name) as name,
        coalesce(r.part_of, p.part_of) as part_of,
        case
            when p.name is null then 'missing'
            when r.name is null then 'extra'
            when difference.detail is not null then 'changed'
        end as problem,
        difference.detail
    from idem_private.object as r
    full join idem_private.present_objects() as p on r.kind = p.kind and r.name = p.name
    cross join lateral (
        select string_agg(format('%s was %s, is %s', key, was.value, now.value), '; ' order by key) as detail
        from jsonb_each(r.definition) as was
        inner join jsonb_each(p.definition) as now using (key)
        where was.value <> now.value
    ) as difference
)

select c.kind || ' ' || c.name, c.problem, c.detail
from compared as c
where c.problem is not null and not exists (
    select from compared as whole
    where whole.problem in ('missing', 'extra') and whole.name = c.part_of and whole.part_of is null
)
order by c.kind, c.name
$$;

comment on function idem_private.drift() is
'What differs from the installed revision: object, problem (changed, missing or extra), and how it changed.';

revoke all on function idem_private.drift() from public;

-- sql/private/unfinished_keys.sql
-- By the list of unfinished keys, one by one (a limit keeps the planner from anything else), so that no completed one
-- is read whatever the statistics say.
create or replace function idem_private.unfinished_keys()
returns table (
    policy text, state text, created_at timestamptz, lapsed_at timestamptz, retries boolean, claimable boolean
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    listed idem_private.unfinished;
    held idem_private.reservation;
    settings idem_private.policy;
begin
    if not idem_private.is_distributed() then
        return query
        with clock as materialized (select idem_private.clock() as at)

        select
            k.policy,
            k.state,
            k.created_at,
            case when k.state = 'lapsed' then k.lapsed_at end,
            k.leased and p.on_lapse = 'retry' and (p.max_attempts is null or k.attempt < p.max_attempts),
            u.claims < p.max_claims
        from idem_private.unfinished as u
        cross join clock as c
        cross join lateral (
            select
                r.policy, r.created_at, r.leased, r.attempt,
                idem_private.lapsed_at(r) as lapsed_at,
                idem_private.phase(r, interval '0', interval '0', c.at) as state
            from idem_private.reservation as r
            where r.scope = u.scope and r.key = u.key and r.completed_at is null
            limit 1
        ) as k
        left join lateral (
            select a.on_lapse, a.max_attempts, a.max_claims from idem_private.policy as a where a.name = k.policy
            union all
            select b.on_lapse, b.max_attempts, b.max_claims from idem_private.retired_policy as b where b.name = k.policy
            limit 1
        ) as p on true;
        return;
    end if;
    -- Citus knows no limit inside of a lateral join.
    for listed in select u.* from idem_private.unfinished as u loop
        select r.* into held
        from idem_private.reservation as r
        where r.scope = listed.scope and r.key = listed.key and r.completed_at is null;
        continue when not found;
        settings := idem_private.policy_of(held.policy);
        policy := held.policy;
        state := idem_private.phase(held, interval '0', interval '0', idem_private.clock());
        created_at := held.created_at;
        lapsed_at := case when state = 'lapsed' then idem_private.lapsed_at(held) end;
        retries := held.leased and settings.on_lapse = 'retry'
            and (settings.max_attempts is null or held.attempt < settings.max_attempts);
        claimable := listed.claims < settings.max_claims;
        return next;
    end loop;
end
$$;

comment on function idem_private.unfinished_keys() is
'How each unfinished key stands, for idem.health and idem.stats: whether the next attempt may take it over, and a resolver claim it.';

revoke all on function idem_private.unfinished_keys() from public;

-- sql/private/table_size.sql
-- Of a distributed table nothing is stored here: Citus adds up its sizes, and each node knows the rows of its shards.
create or replace function idem_private.table_size(out bytes numeric, out rows numeric)
language plpgsql volatile as $$
begin
    if idem_private.is_distributed() then
        execute
            'select
                pg_catalog.citus_total_relation_size(''idem_private.reservation'')::numeric,
                (
                    select sum(greatest(s.result::numeric, 0))
                    from pg_catalog.run_command_on_shards(
                        ''idem_private.reservation'',
                        $c$select reltuples from pg_catalog.pg_class where oid = ''%s''::pg_catalog.regclass$c$
                    ) as s
                    where s.success
                )'
        into bytes, rows;
        return;
    end if;
    select
        pg_total_relation_size(c.oid)::numeric,
        case
            when c.reltuples < 0 then s.n_live_tup::numeric
            when c.relpages = 0 then 0
            else c.reltuples::numeric / c.relpages
                * (pg_relation_size(c.oid) / current_setting('block_size')::int)
        end
    into bytes, rows
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_stat_all_tables as s on c.oid = s.relid
    where c.oid = 'idem_private.reservation'::regclass;
end
$$;

comment on function idem_private.table_size() is
'Bytes of all keys with their indexes, and how many keys the planner counts.';

revoke all on function idem_private.table_size() from public;

-- sql/private/health_of_installation.sql
create or replace function idem_private.health_of_installation()
returns table (check_name text, ok boolean, detail text, fix text)
language plpgsql stable as $$
declare
    revision text;
begin
    if to_regclass('idem_private.alembic_version') is not null then
        select v.version_num::text into revision from idem_private.alembic_version as v;
    end if;
    check_name := 'version';
    ok := revision is not null;
    detail := format('pyidem %s, revision %s', idem.version(), coalesce(revision, 'unknown'));
    fix := 'insert into idem_private.alembic_version (version_num) values (''REVISION'');  -- pyidem sql shows the last one';
    return next;

    check_name := 'drift';
    select
        count(*) = 0,
        case
            when count(*) = 0 then 'every object is as the revision made it'
            else format(
                '%s not as the revision made them: %s%s', count(*),
                string_agg(d.object || ' ' || d.problem, ', ') filter (where d.number <= 3),
                case when count(*) > 3 then ', ...' end
            )
        end,
        coalesce(
            'psql -X -q '
            || string_agg(
                distinct '-f sql/*/' || substring(d.object from '^(?:function|procedure|view) \w+\.(\w+)') || '.sql', ' '
            ) filter (where d.problem <> 'extra')
            || '  # in a checkout of this version; what differs: select * from idem_private.drift()',
            'select * from idem_private.drift();  -- and put back, or drop, what it names'
        )
    into ok, detail, fix
    from (
        select d.object, d.problem, row_number() over () as number from idem_private.drift() as d
    ) as d;
    return next;
end
$$;

comment on function idem_private.health_of_installation() is 'Checks of idem.health: what is installed, and what was changed since.';

revoke all on function idem_private.health_of_installation() from public;

-- sql/private/health_of_guards.sql
-- Each one is put back as it was recorded.
create or replace function idem_private.health_of_guards()
returns table (check_name text, ok boolean, detail text, fix text)
language sql stable as $$
with recorded as (
    select
        max(o.definition ->> 'definition') filter (where o.name = 'reservation_pkey on idem_private.reservation') as primary_key,
        max(o.definition ->> 'definition') filter (where o.name = 'idem_private.reservation_expiry') as expiry_index,
        max(o.definition ->> 'definition')
            filter (where o.name = 'reservation_completed on idem_private.reservation') as check_at_commit
    from idem_private.object as o
    where o.part_of = 'idem_private.reservation'
),

present as (
    select
        (
            select bool_or(i.indisvalid)
            from pg_catalog.pg_index as i
            where i.indrelid = c.oid and i.indisprimary
        ) as primary_key,
        (
            select bool_or(i.indisvalid)
            from pg_catalog.pg_index as i
            where i.indexrelid = to_regclass('idem_private.reservation_expiry')
        ) as expiry_index,
        (
            select bool_or(t.tgenabled in ('O', 'A') and t.tginitdeferred)
            from pg_catalog.pg_trigger as t
            where t.tgrelid = c.oid and t.tgname = 'reservation_completed'
        ) as check_at_commit,
        current_setting('session_replication_role') as session_role
    from pg_catalog.pg_class as c
    where c.oid = 'idem_private.reservation'::regclass
)

select
    'primary_key',
    coalesce(p.primary_key, false),
    case
        when p.primary_key then 'decides every race'
        when p.primary_key is null then 'missing: one key can be taken twice'
        else 'invalid: one key can be taken twice'
    end,
    case
        when p.primary_key is null then format('alter table idem_private.reservation add %s;', r.primary_key)
        else 'reindex table idem_private.reservation;'
    end
from present as p cross join recorded as r
union all
select
    'expiry_index',
    coalesce(p.expiry_index, false),
    case
        when p.expiry_index then 'leads purge to what has expired'
        when p.expiry_index is null then 'missing: each batch of purge reads the whole table'
        else 'invalid: each batch of purge reads the whole table'
    end,
    case
        when p.expiry_index is null then replace(r.expiry_index, 'CREATE INDEX', 'CREATE INDEX CONCURRENTLY') || ';'
        else 'reindex index concurrently idem_private.reservation_expiry;'
    end
from present as p cross join recorded as r
union all
select
    'check_at_commit',
    -- not recorded: idem.distribute has taken it away
    case
        when r.check_at_commit is not null then coalesce(p.check_at_commit, false) and p.session_role <> 'replica'
    end,
    case
        when r.check_at_commit is null
            then 'Citus runs no triggers: an atomic reservation committed unfinished is unresolved'
        when p.check_at_commit and p.session_role = 'replica'
            then 'session_replication_role is replica: an atomic reservation can be committed unfinished'
        when p.check_at_commit then 'no atomic reservation is committed unfinished'
        when p.check_at_commit is null then 'its trigger is missing: an atomic reservation can be committed unfinished'
        else 'its trigger is disabled: an atomic reservation can be committed unfinished'
    end,
    case
        when p.check_at_commit is null then r.check_at_commit || ';'
        when not p.check_at_commit
            then 'alter table idem_private.reservation enable trigger reservation_completed;'
        else format(
            'alter database %1$I reset session_replication_role; alter role %2$I reset session_replication_role;',
            current_database(), session_user
        )
    end
from present as p cross join recorded as r
$$;

comment on function idem_private.health_of_guards() is 'Checks of idem.health: what the invariants rest on.';

revoke all on function idem_private.health_of_guards() from public;

-- sql/private/health_of_settings.sql
-- What can be meant is left alone: only settings that undo each other are named.
create or replace function idem_private.health_of_settings()
returns table (check_name text, ok boolean, detail text, fix text)
language sql stable as $$
with odd as (
    select p.name, o.problem, o.change
    from idem_private.policy as p
    cross join lateral (values
        (
            p.on_lapse = 'retry' and p.max_attempts = 1,
            'retries after a lapse, but allows one attempt', 'max_attempts = null'
        ),
        (
            p.min_retention > p.ttl,
            format('keeps keys for min_retention (%s), which is longer than ttl (%s)', p.min_retention, p.ttl),
            'min_retention = ttl'
        ),
        (
            p.retry_after > greatest(p.ttl, p.min_retention),
            'asks clients to come back when the answer is gone', 'retry_after = ''1 second'''
        ),
        (
            p.lease > interval '1 hour',
            format('says in_progress for %s after a crash', p.lease), 'lease = ''1 minute'''
        ),
        (p.required and p.methods = '{}', 'requires a key, but covers no method', 'methods = ''{POST,PATCH}''')
    ) as o (found, problem, change)
    where o.found
),

lacking as (
    select a.role, a.given, r.object
    from idem_private.access as a
    inner join pg_catalog.pg_roles as held on a.role = held.oid
    inner join idem_private.rights() as r on a.given = any(r.given_by)
    where case
        when r.privileges = 'execute' then not has_function_privilege(a.role, to_regproc(r.object), 'execute')
        else not (
            select bool_and(has_table_privilege(a.role, to_regclass(r.object), wanted.privilege))
            from unnest(string_to_array(r.privileges, ', ')) as wanted (privilege)
        )
    end
    union all
    select a.role, a.given, 'schema idem'
    from idem_private.access as a
    inner join pg_catalog.pg_roles as held on a.role = held.oid
    where not has_schema_privilege(a.role, 'idem', 'usage')
)

select
    'policies',
    count(*) = 0,
    coalesce(
        string_agg(format('%s %s', o.name, o.problem), '; ' order by o.name, o.problem),
        'no policy contradicts itself'
    ),
    string_agg(format('update idem.policies set %s where name = %L;', o.change, o.name), ' ' order by o.name, o.problem)
from odd as o
union all
select
    'grants',
    count(*) = 0,
    case
        when count(*) = 0 then 'every role has what it was granted'
        else format('revoked since it was granted: %s', (
            select string_agg(format('%s of %s', f.object, f.role), ', ' order by f.role::text, f.object)
            from (select l.* from lacking as l order by l.role::text, l.object limit 3) as f
        ) || case when count(*) > 3 then format(' and %s more', count(*) - 3) else '' end)
    end,
    (
        select string_agg(format('select idem.grant_%s(%L);', g.given, g.role), ' ' order by g.role::text, g.given)
        from (
            select distinct l.given, r.rolname as role
            from lacking as l inner join pg_catalog.pg_roles as r on l.role = r.oid
        ) as g
    )
from lacking
union all
select
    'testing',
    not t.enabled,
    case when t.enabled then 'enabled: every session may move its clock and lift checks' else 'not enabled' end,
    'select idem.disable_testing();'
from (select idem_private.testing_enabled() as enabled) as t
$$;

comment on function idem_private.health_of_settings() is 'Checks of idem.health: policies, grants and testing.';

revoke all on function idem_private.health_of_settings() from public;

-- sql/private/health_of_keys.sql
create or replace function idem_private.health_of_keys()
returns table (check_name text, ok boolean, detail text, fix text)
language sql volatile as $$
with lapsed as (
    select
        count(*) as keys,
        count(*) filter (where not k.retries) as unresolved,
        count(*) filter (where not k.claimable) as given_up,
        idem_private.clock() - min(k.lapsed_at) as age,
        idem_private.clock() - min(k.lapsed_at) filter (where not k.claimable) as age_of_given_up
    from idem_private.unfinished_keys() as k
    where k.state = 'lapsed'
)

select
    'lapsed',
    coalesce(l.age < interval '15 minutes', true),
    case
        when l.keys = 0 then 'no key has an unknown outcome'
        else format(
            '%s with an unknown outcome, the oldest for %s; %s unresolved', l.keys, date_trunc('second', l.age), l.unresolved
        )
    end,
    'pyidem sweep --resolver MODULE:NAME  -- or see and decide: pyidem list'
from lapsed as l
union all
select
    'given_up',
    l.given_up = 0,
    case
        when l.given_up = 0 then 'no key waits for an operator'
        else format(
            '%s claimed so often that they wait for an operator, the oldest for %s',
            l.given_up, date_trunc('second', l.age_of_given_up)
        )
    end,
    'select * from idem.keys where unfinished and outcome = ''lapsed'' and claims >= max_claims;  -- then idem.resolve'
from lapsed as l
$$;

comment on function idem_private.health_of_keys() is 'Checks of idem.health: keys whose outcome is unknown.';

revoke all on function idem_private.health_of_keys() from public;

-- sql/private/health_of_purge.sql
create or replace function idem_private.health_of_purge()
returns table (check_name text, ok boolean, detail text, fix text)
language plpgsql volatile as $$
declare
    most constant int := 1000;
    longest constant interval := interval '25 hours';
    at constant timestamptz := idem_private.clock();
    purge record;
begin
    select p.* into purge from idem.purge_state() as p;
    check_name := 'purge';
    fix := 'call idem.purge_all();';
    detail := case
        when purge.ended_at is null then 'has never run'
        else format('ended %s ago, removed %s', date_trunc('second', at - purge.ended_at), purge.removed)
    end;
    if purge.due is null then
        detail := detail || '; what is due cannot be seen without the index on expiry';
        return next;
        return;
    end if;
    ok := coalesce(at - purge.due_since < longest, true);
    detail := detail || case
        when purge.due = 0 then '; nothing is due'
        else format(
            '; %s%s due, the oldest for %s', purge.due, case when purge.due = most then ' or more' else '' end,
            date_trunc('second', at - purge.due_since)
        )
    end;
    return next;
end
$$;

comment on function idem_private.health_of_purge() is 'Checks of idem.health: the last purge, and what is left for the next.';

revoke all on function idem_private.health_of_purge() from public;

-- sql/private/health_of_job.sql
-- Nothing of pg_cron is named outside dynamic SQL, since it may not be there. Whoever purges, a purge is a purge: where
-- one has ended within a day or so, no job is missed.
create or replace function idem_private.health_of_job()
returns table (check_name text, ok boolean, detail text, fix text)
language plpgsql volatile as $$
#variable_conflict use_column
declare
    longest constant interval := interval '25 hours';
    at constant timestamptz := idem_private.clock();
    purged_at constant timestamptz := (select p.ended_at from idem_private.last_purge as p);
    purged constant boolean := coalesce(purged_at > at - longest, false);
    otherwise constant text := case
        when purged_at is null then 'no purge has ever run'
        else format(
            '%s purge ended %s ago', case when purged then 'but a' else 'the last' end,
            date_trunc('second', at - purged_at)
        )
    end;
    job record;
    run record;
begin
    check_name := 'purge_job';
    if pg_is_in_recovery() then
        detail := 'this is a standby: its primary purges, ask that';
        return next;
        return;
    end if;
    if idem_private.cron_version() is null then
        ok := purged;
        detail := 'pg_cron is not in this database; ' || otherwise;
        fix := 'create extension pg_cron; select idem.schedule();  -- or without it: pyidem purge --every 60';
        return next;
        return;
    end if;
    if not has_schema_privilege('cron', 'USAGE') then
        detail := format('cannot see jobs of pg_cron: role %I may not use its schema; %s', current_user, otherwise);
        fix := format('grant usage on schema cron to %I;', current_user);
        return next;
        return;
    end if;

    select j.jobid, j.username, s.problem, s.fix into job
    from idem_private.purge_jobs() as j
    left join pg_catalog.pg_roles as r on j.username = r.rolname
    cross join lateral (
        select
            case
                when not j.active then 'is not active'
                when r.oid is null then format('belongs to role %I, which does not exist', j.username)
                when not r.rolcanlogin then format('belongs to role %I, which may not log in', j.username)
                when not has_schema_privilege(r.oid, 'idem', 'usage')
                    or not has_function_privilege(r.oid, 'idem.purge_all(int, interval)', 'execute')
                    then format('belongs to role %I, which may not call idem.purge_all', j.username)
            end as problem,
            case
                when r.oid is not null and not r.rolcanlogin then format('alter role %I login;', j.username)
                when r.oid is not null and j.active then format('select idem.grant_operator(%L);', j.username)
                when j.username = current_user then 'select idem.schedule();'
                else format('select cron.unschedule(%s); select idem.schedule();', j.jobid)
            end as fix
    ) as s
    order by s.problem is not null, j.jobid
    limit 1;
    if job.jobid is null then
        ok := purged;
        detail := format('no job of pg_cron that role %I can see purges this database; %s', current_user, otherwise);
        fix := 'select idem.schedule();  -- those of other roles, which may be gone, a superuser sees: table cron.job;';
        return next;
        return;
    end if;
    ok := job.problem is null;
    detail := format('job %s %s', job.jobid, coalesce(job.problem, format('of role %I is active', job.username)));
    fix := job.fix;
    return next;

    check_name := 'purge_job_runs';
    if to_regclass('cron.job_run_details') is null or not has_table_privilege('cron.job_run_details', 'SELECT') then
        ok := null;
        detail := 'cannot see what pg_cron has recorded of runs';
        fix := format('grant select on cron.job_run_details to %I;', current_user);
        return next;
        return;
    end if;
    execute
        'select d.status, d.return_message, d.start_time
        from (select r.* from cron.job_run_details as r order by r.runid desc limit 2000) as d
        where d.jobid = $1 and d.status in (''succeeded'', ''failed'')
        order by d.runid desc
        limit 1'
    into run
    using job.jobid;
    ok := case
        when run.status = 'failed' or run.start_time < at - longest then false
        when run.status = 'succeeded' or purged then true
    end;
    detail := case
        when run.status is null then 'no run is recorded among the last; ' || otherwise
        when run.status = 'failed'
            then format('failed %s ago: %s', date_trunc('second', at - run.start_time), run.return_message)
        else format('succeeded %s ago', date_trunc('second', at - run.start_time))
    end;
    fix := 'call idem.purge_all();  -- by hand shows what is wrong; pg_cron itself logs to the log of the server';
    return next;
end
$$;

comment on function idem_private.health_of_job() is 'Checks of idem.health: the job of pg_cron, and how it ran.';

revoke all on function idem_private.health_of_job() from public;

-- sql/private/health_of_server.sql
create or replace function idem_private.health_of_server()
returns table (check_name text, ok boolean, detail text, fix text)
language sql stable as $$
with server as (
    select
        pg_is_in_recovery() as standby,
        current_setting('default_transaction_read_only') = 'on' as read_only,
        current_setting('autovacuum') = 'on' and current_setting('track_counts') = 'on' as vacuums,
        current_setting('fsync') = 'on' as syncs,
        current_setting('synchronous_commit') as commits,
        current_setting('synchronous_standby_names') as synchronous,
        (select count(*) from pg_catalog.pg_stat_replication) as standbys,
        current_setting('max_locks_per_transaction')::bigint
        * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint) as locks,
        (select count(*) from pg_catalog.pg_locks as l where not l.fastpath) as locks_used,
        (select max(p.max_batch) from idem_private.policy as p) as largest_batch
),

tables as (
    select
        c.oid::regclass as name,
        s.n_dead_tup as dead,
        coalesce(o.options ->> 'autovacuum_enabled', 'true')::boolean as vacuums,
        coalesce(o.options ->> 'autovacuum_vacuum_threshold', current_setting('autovacuum_vacuum_threshold'))::numeric
        + coalesce(
            o.options ->> 'autovacuum_vacuum_scale_factor', current_setting('autovacuum_vacuum_scale_factor')
        )::numeric * greatest(c.reltuples, 0)::numeric as threshold,
        age(c.relfrozenxid) as age
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_stat_all_tables as s on c.oid = s.relid
    cross join lateral (
        select jsonb_object_agg(x.option_name, x.option_value) as options
        from pg_options_to_table(c.reloptions) as x
    ) as o
    where c.relnamespace = 'idem_private'::regnamespace and c.relkind = 'r'
),

behind as (
    select
        string_agg(
            case
                when not t.vacuums then format('it is off for %s', t.name)
                when t.dead > 10000 + 3 * t.threshold then format('%s has %s dead rows', t.name, t.dead)
                else format('%s is %s transactions old', t.name, t.age)
            end, '; '
        ) as detail,
        string_agg(
            case
                when not t.vacuums then format('alter table %s reset (autovacuum_enabled);', t.name)
                else format('vacuum (analyze) %s;', t.name)
            end, ' '
        ) as fix
    from tables as t
    where not t.vacuums or t.dead > 10000 + 3 * t.threshold
        or t.age > 1.5 * current_setting('autovacuum_freeze_max_age')::numeric
)

select
    'writable',
    not s.standby and not s.read_only,
    case
        when s.standby then 'this server is a read-only standby: no key can be reserved here'
        when s.read_only then 'default_transaction_read_only is on: no key can be reserved'
        else 'keys can be reserved'
    end,
    case
        when s.standby then 'Connect to the primary: target_session_attrs=read-write with all hosts in the connection string'
        else format(
            'alter database %I reset default_transaction_read_only; alter role %I reset default_transaction_read_only;',
            current_database(), session_user
        )
    end
from server as s
union all
select
    'autovacuum',
    s.vacuums and b.detail is null,
    case when not s.vacuums then 'it is off' else coalesce(b.detail, 'keeps up') end,
    case
        when not s.vacuums
            then 'alter system set autovacuum = on; alter system set track_counts = on; select pg_reload_conf();'
        else b.fix
    end
from server as s cross join behind as b
union all
select
    'lock_table',
    s.locks_used * 2 < s.locks and s.largest_batch * 4 <= s.locks,
    format('%s of %s slots in use, the largest max_batch is %s', s.locks_used, s.locks, s.largest_batch),
    format(
        'alter system set max_locks_per_transaction = %s;  -- and restart the server',
        4 * current_setting('max_locks_per_transaction')::bigint
    )
from server as s
union all
select
    'durability',
    s.syncs and not (s.commits = 'local' and s.synchronous <> ''),
    case
        when not s.syncs then 'fsync is off: a crash of the server can lose or damage everything'
        when s.commits = 'local' and s.synchronous <> ''
            then 'synchronous_commit is local: a leased reservation does not wait for the synchronous standbys'
        else format('synchronous_commit is %s; leased reservations wait for the disk in any case', s.commits)
    end,
    case
        when not s.syncs then 'alter system set fsync = on; select pg_reload_conf();'
        else format(
            'alter database %I reset synchronous_commit; alter role %I reset synchronous_commit;',
            current_database(), session_user
        )
    end
from server as s
union all
select
    'replication',
    case when not s.standby and (s.synchronous <> '' or s.standbys = 0) then true end,
    case
        when s.standby then 'this is a standby: ask the primary'
        when s.synchronous <> '' then format('synchronous_standby_names is %L', s.synchronous)
        when s.standbys = 0 then 'no standby is connected'
        else format(
            '%s connected, none synchronous: where one is promoted, the newest reservations can be missing', s.standbys
        )
    end,
    case
        when not s.standby then 'alter system set synchronous_standby_names = ''*''; select pg_reload_conf();'
    end
from server as s
$$;

comment on function idem_private.health_of_server() is 'Checks of idem.health: what the server must have set.';

revoke all on function idem_private.health_of_server() from public;

-- sql/core/downstream_key.sql
create or replace function idem.downstream_key(scope text, key text, step text default '') returns uuid
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    secret bytea;
begin
    perform idem_private.check_scope(downstream_key.scope);
    perform idem_private.check_key(downstream_key.scope, downstream_key.key, 1, 1024, '');
    select s.value into strict secret from idem_private.secret as s;
    return idem_private.derive_key(
        secret, downstream_key.scope, downstream_key.key, coalesce(downstream_key.step, '')
    );
end
$$;

comment on function idem.downstream_key(text, text, text) is
'The idempotency key to pass on to the next system: the same for every attempt at (scope, key, step), different in every installation, not guessable. Errors: IK001.';

revoke all on function idem.downstream_key(text, text, text) from public;

-- sql/core/reserve.sql
-- Look; if nothing is there, take a transaction-level try-lock on the key; look again; insert. An uncommitted insert of
-- the same key would make ON CONFLICT wait for the whole first request: every insert holds the lock, so whoever does
-- not get it knows that another attempt is at work, without waiting, and with the lock held a row that the second look
-- does not show cannot appear. The unique constraint is still the arbiter. A replay takes no lock at all.
--
-- Under REPEATABLE READ a row committed after the snapshot makes an insert raise 40001.
--
-- PL/pgSQL prepares each expression anew in every transaction, and each statement its whole plan, even the parts that
-- are not reached: so there are few of them, and what is rare is elsewhere.
create or replace function idem.reserve(
    scope text,
    key text,
    fingerprint bytea default null,
    mode text default 'atomic',
    lease interval default null,
    fields jsonb default null,
    state jsonb default null,
    token uuid default null,
    policy text default 'default'
) returns idem.reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    leased boolean;
    max_rounds constant int := 10;
    look record;
    bound boolean;
    settings record;
    downstream_key uuid;
    answer idem.reservation;
begin
    if reserve.mode is distinct from 'atomic' or reserve.lease is not null or reserve.fields is not null then
        perform idem_private.check_mode(reserve.mode, reserve.lease);
        reserve.lease := idem_private.check_interval('lease', reserve.lease);
        perform idem_private.check_fields(reserve.fields);
        leased := reserve.mode = 'leased';
        if leased then
            perform idem_private.begin_leased();
        end if;
    end if;

    for round in 1..max_rounds loop
        select
            r.policy, r.fingerprint, r.attempt, r.created_at, r.expires_at, r.completed_at, r.status, r.headers, r.body
        into look
        from idem_private.reservation as r
        where r.scope = reserve.scope collate "C" and r.key = reserve.key collate "C";
        -- The quick yes for a replay; idem_private.judge knows every rule.
        if look.completed_at is not null and look.policy = coalesce(reserve.policy, 'default') collate "C"
            and look.fingerprint is not distinct from reserve.fingerprint then
            select idem_private.real_expiry(look.expires_at, look.completed_at, p.min_retention), p.scopes_bound
            into look.expires_at, bound
            from idem_private.policy as p
            where p.name = look.policy;
            if bound is false and idem_private.clock() < look.expires_at then
                return row(
                    'replay', null, look.attempt, null, null, null, look.status, look.headers, look.body, null, null,
                    look.created_at, null, look.completed_at, look.expires_at
                )::idem.reservation;
            end if;
        end if;

        select
            p.name, p.ttl, p.lease, p.retry_after, p.scopes_bound, idem_private.clock() as at,
            idem_private.key_fits(
                reserve.scope, reserve.key, p.key_min_length, p.key_max_length, p.key_pattern
            ) as fits,
            case
                when look.created_at is null
                    then pg_try_advisory_xact_lock(idem_private.lock_id(reserve.scope, reserve.key))
            end as locked
        into settings
        from idem_private.policy as p
        where p.name = coalesce(reserve.policy, 'default') collate "C";
        if settings.fits is not true or settings.scopes_bound then
            perform idem_private.check_scope(reserve.scope);
            perform idem_private.check_call(reserve.scope, reserve.key, reserve.policy);
        end if;
        if look.created_at is not null then
            answer := idem_private.reserve_existing(
                reserve.scope, reserve.key, reserve.fingerprint, reserve.fields, settings.name, settings.ttl,
                leased is true, reserve.lease, settings.lease, reserve.state, coalesce(reserve.token, gen_random_uuid())
            );
            if answer.outcome is not null then
                return answer;
            end if;
            continue;
        elsif not settings.locked then
            return idem_private.busy(settings.retry_after);
        end if;
        perform from idem_private.reservation as r
        where r.scope = reserve.scope collate "C" and r.key = reserve.key collate "C";
        continue when found;

        if current_setting('transaction_isolation') <> 'read committed' then
            perform idem_private.require_fresh_snapshot(reserve.scope, reserve.key);
        end if;
        if leased then
            reserve.lease := coalesce(reserve.lease, settings.lease);
        end if;
        select
            coalesce(reserve.token, gen_random_uuid()),
            idem_private.derive_key(s.value, reserve.scope, reserve.key, '')
        into strict reserve.token, downstream_key
        from idem_private.secret as s;
        insert into idem_private.reservation (
            scope, key, fingerprint, fields, policy, created_at, expires_at, owned_at, owner_xid, token, attempt,
            leased, must_complete, lease, lease_until, state
        ) values (
            reserve.scope, reserve.key, reserve.fingerprint, reserve.fields, settings.name, settings.at,
            settings.at + settings.ttl, clock_timestamp(), pg_current_xact_id(), reserve.token, 1,
            leased is true, leased is not true, reserve.lease, settings.at + reserve.lease, reserve.state
        )
        on conflict do nothing;
        if found then
            if leased then
                perform idem_private.note_leased(reserve.scope, reserve.key, false);
            end if;
            return row(
                'started', reserve.token, 1, downstream_key, null, reserve.state, null, null, null, null, null,
                settings.at, settings.at + reserve.lease, null, settings.at + settings.ttl
            )::idem.reservation;
        end if;
    end loop;

    -- A row came and went at every look. Whoever made it is at work.
    return idem_private.busy(settings.retry_after);
end
$$;

comment on function idem.reserve(text, text, bytea, text, interval, jsonb, jsonb, uuid, text) is
'Claims (scope, key) before any work is done. Outcome: started, replay, in_progress, unresolved, mismatch or expired. Mode atomic: the work and idem.complete are in the same transaction; leased: commit, then do the work. Errors: IK001, IK004, IK006, IK007, 22023.';

revoke all on function idem.reserve(text, text, bytea, text, interval, jsonb, jsonb, uuid, text) from public;

-- sql/core/complete.sql
-- A compare-and-set. It may wait for the row (a takeover, another completion); the conditions are then checked again on
-- the newest version, so a stale token changes nothing.
create or replace function idem.complete(
    scope text,
    key text,
    token uuid,
    status int default null,
    headers jsonb default null,
    body bytea default null
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    at timestamptz := idem_private.clock();
begin
    if not idem_private.headers_are_pairs(complete.headers) then
        perform idem_private.refuse_headers();
    end if;

    -- What this transaction has reserved nobody else can hold.
    update idem_private.reservation as r
    set
        completed_at = at,
        status = complete.status,
        headers = complete.headers,
        body = complete.body
    where r.scope = complete.scope collate "C" and r.key = complete.key collate "C" and r.token = complete.token
        and r.completed_at is null and not r.leased
        -- idem_private.owned_here, written out: Citus takes no function of columns that is not immutable in an update
        and r.owner_xid = pg_current_xact_id_if_assigned() and r.owned_at >= transaction_timestamp();
    if found then
        -- For idem_private.require_completion.
        complete.key := set_config(
            'idem_private.completed', complete.token || complete.scope || e'\n' || complete.key, true
        );
        return true;
    end if;

    perform idem_private.check_scope(complete.scope);
    -- Anything else may have to be waited for, and the clock is read after that.
    perform from idem_private.reservation as r
    where r.scope = complete.scope collate "C" and r.key = complete.key collate "C" and r.token = complete.token
        and r.completed_at is null and r.released_at is null
        and (
            not r.leased
            or not idem_private.owned_here(r.owner_xid, r.owned_at)
            or idem_private.single_transaction()
        )
    for update;
    if found then
        at := idem_private.clock();
        update idem_private.reservation as r
        set
            completed_at = at,
            status = complete.status,
            headers = complete.headers,
            body = complete.body
        where r.scope = complete.scope collate "C" and r.key = complete.key collate "C";
        delete from idem_private.unfinished as u
        where u.scope = complete.scope collate "C" and u.key = complete.key collate "C";
        perform idem_private.commit_durably();
        return true;
    end if;

    if exists (
        select from idem_private.reservation as r
        where r.scope = complete.scope collate "C" and r.key = complete.key collate "C" and r.token = complete.token
            and r.completed_at is not null
            and r.status is not distinct from complete.status
            and r.headers is not distinct from complete.headers
            and r.body is not distinct from complete.body
    ) then
        return false;
    end if;
    perform idem_private.refuse_owner_call(complete.scope, complete.key, complete.token, false);
    return null;
end
$$;

comment on function idem.complete(text, text, uuid, int, jsonb, bytea) is
'Stores the answer of a reservation and ends it. False: this token has stored exactly this before, in an earlier transaction; roll back the work done again. Headers are a JSON array of [name, value] pairs. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.complete(text, text, uuid, int, jsonb, bytea) from public;

-- sql/core/release.sql
create or replace function idem.release(scope text, key text, token uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
    repeated boolean;
    at timestamptz;
begin
    perform idem_private.check_scope(release.scope);
    -- Locked, so that a repetition under way is waited for and then seen.
    select r.released_at is not null into repeated
    from idem_private.reservation as r
    where r.scope = release.scope collate "C" and r.key = release.key collate "C" and r.token = release.token
    for update;
    if repeated then
        return false;
    end if;
    held := idem_private.hold(release.scope, release.key, release.token);
    at := idem_private.clock();
    perform idem_private.free_key(held, at, false, held.token);
    perform idem_private.record_event(held, 'released', at, null, null);
    return true;
end
$$;

comment on function idem.release(text, text, uuid) is
'Leased: the work did not happen; the key may run again. False: this token has released it before. Errors: IK001, IK002, IK003, IK004.';

revoke all on function idem.release(text, text, uuid) from public;

-- sql/core/defer.sql
create or replace function idem.defer(
    scope text, key text, token uuid, retry_in interval default null, reason text default null
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
    at timestamptz;
    claim_after timestamptz;
begin
    perform idem_private.check_scope(defer.scope);
    defer.retry_in := idem_private.check_interval('retry_in', defer.retry_in);
    held := idem_private.hold(defer.scope, defer.key, defer.token);
    at := idem_private.clock();
    if held.lease_until < at then
        perform idem_private.record_lapse(held);
    end if;
    -- Only ever earlier: a lease that is over stays over since then.
    update idem_private.reservation as r
    set lease_until = least(r.lease_until, at)
    where r.scope = held.scope and r.key = held.key;
    update idem_private.unfinished as u
    set claim_after = at + coalesce(defer.retry_in, idem_private.back_off(u.claims)), reason = defer.reason
    where u.scope = held.scope and u.key = held.key
    returning u.claim_after into claim_after;
    -- After the list, so that idem_private.begin_leased does not take that write for a reservation's.
    perform idem_private.record_event(
        held, 'deferred', at, defer.reason, jsonb_build_object('claim_after', claim_after)
    );
    return true;
end
$$;

comment on function idem.defer(text, text, uuid, interval, text) is
'Leased: the owner gives up and the outcome is unknown; the lease ends now and the policy decides, as after any lapse. The token stays valid until another attempt or a resolver takes over. retry_in delays resolvers only; after a claim its default grows with every claim. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.defer(text, text, uuid, interval, text) from public;

-- sql/core/extend.sql
create or replace function idem.extend(
    scope text, key text, token uuid, lease interval default null
) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    held idem_private.reservation;
begin
    perform idem_private.check_scope(extend.scope);
    extend.lease := idem_private.check_interval('lease', extend.lease);
    held := idem_private.hold(extend.scope, extend.key, extend.token);
    held := idem_private.renew_lease(held, extend.lease);
    return held.lease_until;
end
$$;

comment on function idem.extend(text, text, uuid, interval) is
'Leased: heartbeat. The lease now ends after the given length, or the length it was reserved with; returns when. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.extend(text, text, uuid, interval) from public;

-- sql/core/checkpoint.sql
create or replace function idem.checkpoint(
    scope text, key text, token uuid, recovery_point text, state jsonb default null
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    max_length constant int := 255;
    held idem_private.reservation;
    at timestamptz;
begin
    perform idem_private.check_scope(checkpoint.scope);
    if coalesce(length(checkpoint.recovery_point), 0) not between 1 and max_length
        or checkpoint.recovery_point collate "C" !~ '\S' then
        raise exception using
            errcode = '22023',
            message = 'recovery_point must be a name of 1 to 255 characters',
            detail = jsonb_build_object(
                'code', 'recovery_point_unfit', 'argument', 'recovery_point', 'limit', max_length
            )::text,
            hint = 'Name the step that is done, such as charged.';
    end if;
    held := idem_private.hold(checkpoint.scope, checkpoint.key, checkpoint.token);
    if held.recovery_point = checkpoint.recovery_point collate "C" then
        if checkpoint.state is null or checkpoint.state is not distinct from held.state then
            return false;
        end if;
        raise exception using
            errcode = 'IK002',
            message = 'this recovery point has been reached before, with another state',
            detail = jsonb_build_object('code', 'already_reached', 'attempt', held.attempt)::text,
            hint = 'The first state stays. Roll back, and reserve again to read it.';
    end if;
    at := idem_private.clock();
    update idem_private.reservation as r
    set
        recovery_point = checkpoint.recovery_point,
        state = coalesce(checkpoint.state, r.state),
        lease_until = at + r.lease
    where r.scope = held.scope and r.key = held.key;
    return true;
end
$$;

comment on function idem.checkpoint(text, text, uuid, text, jsonb) is
'Leased: this step is done, and commits with the caller''s transaction; the next attempt is told so. Renews the lease; a null state keeps the stored one. False: this token has reached this point before, in an earlier transaction; roll back the work done again. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.checkpoint(text, text, uuid, text, jsonb) from public;

-- sql/core/lookup.sql
create or replace function idem.lookup(scope text, key text) returns idem.reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    found_row idem_private.reservation;
    settings idem_private.policy;
    answer idem.reservation;
    at timestamptz;
begin
    perform idem_private.check_scope(lookup.scope);
    perform idem_private.check_key(lookup.scope, lookup.key, 1, 1024, '');
    answer.outcome := 'absent';
    select r.* into found_row
    from idem_private.reservation as r
    where r.scope = lookup.scope collate "C" and r.key = lookup.key collate "C";
    if not found then
        return answer;
    end if;
    settings := idem_private.policy_of(found_row.policy);
    at := idem_private.clock();
    answer.outcome := idem_private.phase(found_row, settings.min_retention, settings.tombstone, at);
    if answer.outcome = 'absent' then
        return answer;
    end if;
    answer.attempt := found_row.attempt;
    answer.created_at := found_row.created_at;
    answer.completed_at := found_row.completed_at;
    answer.expires_at := coalesce(
        found_row.expired_at,
        idem_private.real_expiry(found_row.expires_at, found_row.completed_at, settings.min_retention)
    );
    if answer.outcome = 'completed' then
        answer.status := found_row.status;
        answer.headers := found_row.headers;
        answer.body := found_row.body;
    elsif answer.outcome in ('in_progress', 'lapsed') then
        answer.lease_until := found_row.lease_until;
    end if;
    return answer;
end
$$;

comment on function idem.lookup(text, text) is
'What is stored of a key, without touching it: absent, in_progress, lapsed, released, completed or expired; never a token. Takes no lock, sees committed rows only. Errors: IK001.';

revoke all on function idem.lookup(text, text) from public;

-- sql/core/json_response.sql
create or replace function idem.json_response(
    status int, body json, headers jsonb default null
) returns idem.response
language plpgsql immutable security definer set search_path = pg_catalog, pg_temp as $$
begin
    json_response.headers := coalesce(json_response.headers, '[]');
    if not idem_private.headers_are_pairs(json_response.headers) then
        perform idem_private.refuse_headers();
    end if;
    if json_response.body is not null
        and not jsonb_path_exists(json_response.headers, '$[*][0] ? (@ like_regex "^content-type$" flag "i")') then
        json_response.headers := '[["content-type", "application/json"]]' || json_response.headers;
    end if;
    return row(
        json_response.status, json_response.headers, convert_to(json_response.body::text, 'UTF8')
    )::idem.response;
end
$$;

comment on function idem.json_response(int, json, jsonb) is
'A response whose body is this JSON text in UTF-8, as it is written; its content type is added unless given. A null body is none, and has no type. Errors: 22023.';

revoke all on function idem.json_response(int, json, jsonb) from public;

-- sql/core/run_begin.sql
-- The first half of idem.run, for a key of which nothing is stored: its lock alone holds it until the transaction
-- ends, and run_end writes the row once, finished. Locked first, so that one look is enough. Whether scope, key and
-- policy are acceptable is for run_end to say: what the handler did meanwhile is rolled back with it.
create or replace function idem.run_begin(scope text, key text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    locked boolean;
    stored boolean;
    bound boolean;
begin
    locked := pg_try_advisory_xact_lock(idem_private.lock_id(run_begin.scope, run_begin.key));
    select
        exists (
            select from idem_private.reservation as r
            where r.scope = run_begin.scope collate "C" and r.key = run_begin.key collate "C"
        ),
        exists (select from idem_private.scope_binding)
    into stored, bound;
    if bound then
        perform idem_private.check_scope(run_begin.scope);
    end if;
    if stored or locked is not true then
        return false;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        perform idem_private.require_fresh_snapshot(run_begin.scope, run_begin.key);
    end if;
    return true;
end
$$;

comment on function idem.run_begin(text, text) is
'For idem.run alone: true holds a new key until the transaction ends, without storing anything; false: ask idem.reserve. Errors: 42501.';

revoke all on function idem.run_begin(text, text) from public;

-- sql/core/run_end.sql
-- The second half of idem.run. It stands alone: called without run_begin it is reserve and complete in one write, under
-- the same lock and constraint.
create or replace function idem.run_end(
    scope text,
    key text,
    fingerprint bytea,
    token uuid,
    response idem.response,
    policy text default 'default'
) returns idem.reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    settings record;
    answer idem.reservation;
begin
    if run_end.token is not null then
        if not idem.complete(
            run_end.scope, run_end.key, run_end.token,
            (run_end.response).status, (run_end.response).headers, (run_end.response).body
        ) then
            perform idem_private.refuse_owner_call(run_end.scope, run_end.key, run_end.token, false);
        end if;
        answer := idem.lookup(run_end.scope, run_end.key);
        answer.outcome := 'started';
        answer.token := run_end.token;
        return answer;
    end if;

    select
        p.name, p.ttl, p.min_retention, p.scopes_bound, idem_private.clock() as at,
        idem_private.headers_are_pairs((run_end.response).headers) is not false as pairs,
        idem_private.key_fits(
            run_end.scope, run_end.key, p.key_min_length, p.key_max_length, p.key_pattern
        ) as fits,
        pg_try_advisory_xact_lock(idem_private.lock_id(run_end.scope, run_end.key)) as locked
    into settings
    from idem_private.policy as p
    where p.name = coalesce(run_end.policy, 'default') collate "C";
    if (settings.fits and settings.pairs and not settings.scopes_bound) is not true then
        perform idem_private.check_scope(run_end.scope);
        perform idem_private.check_call(run_end.scope, run_end.key, run_end.policy);
        if not settings.pairs then
            perform idem_private.refuse_headers();
        end if;
    end if;

    if settings.locked then
        insert into idem_private.reservation (
            scope, key, fingerprint, policy, created_at, expires_at, attempt, leased, completed_at, status, headers, body
        ) values (
            run_end.scope, run_end.key, run_end.fingerprint, settings.name, settings.at, settings.at + settings.ttl,
            1, false, settings.at, (run_end.response).status, (run_end.response).headers, (run_end.response).body
        )
        on conflict do nothing;
        if found then
            return row(
                'started', null, 1, null, null, null,
                (run_end.response).status, (run_end.response).headers, (run_end.response).body,
                null, null, settings.at, null, settings.at,
                idem_private.real_expiry(settings.at + settings.ttl, settings.at, settings.min_retention)
            )::idem.reservation;
        end if;
    end if;
    raise exception using
        errcode = 'IK002',
        message = 'the key was reserved by another attempt meanwhile',
        detail = jsonb_build_object('code', 'not_the_owner')::text,
        hint = 'The handler of idem.run must not reserve its own key. Roll back, and run again to learn the outcome.';
end
$$;

comment on function idem.run_end(text, text, bytea, uuid, idem.response, text) is
'For idem.run alone: stores the response of its handler. Errors: IK001, IK002, IK006, 22023.';

revoke all on function idem.run_end(text, text, bytea, uuid, idem.response, text) from public;

-- sql/core/run.sql
-- Runs as the caller and without a SET clause: the handler has the caller's rights and search_path. What needs more is
-- done by run_begin, reserve and run_end, and names here are qualified against that search_path.
create or replace function idem.run(
    scope text,
    key text,
    fingerprint bytea,
    handler regprocedure,
    args jsonb,
    policy text default 'default'
) returns idem.reservation
language plpgsql volatile as $$
declare
    signature constant pg_catalog.text := run.handler::pg_catalog.text;
    locked constant boolean := idem.run_begin(run.scope, run.key);
    answer idem.reservation;
    -- an array of one, since a composite value by itself is spread over the fields of the target
    responses idem.response[];
begin
    -- The type is written out in full where another of its name is found first, and quoted where the session has
    -- quote_all_identifiers on.
    if pg_catalog.right(signature, 7) operator(pg_catalog.=) '(jsonb)'
        or pg_catalog.right(signature, 9) operator(pg_catalog.=) '("jsonb")'
        or pg_catalog.right(signature, 18) operator(pg_catalog.=) '(pg_catalog.jsonb)'
        or pg_catalog.right(signature, 22) operator(pg_catalog.=) '("pg_catalog"."jsonb")' then
        if not locked then
            answer := idem.reserve(run.scope, run.key, run.fingerprint, policy => run.policy);
            if answer.outcome operator(pg_catalog.<>) 'started' then
                return answer;
            end if;
        end if;
        if run.args is null then
            perform
            from pg_catalog.pg_proc as p
            where p.oid operator(pg_catalog.=) run.handler::pg_catalog.oid and p.proisstrict;
            if found then
                raise exception using
                    errcode = '22023',
                    message = 'args is null and the handler STRICT: it would not be called, and yet count as done',
                    detail = pg_catalog.jsonb_build_object('code', 'args_missing', 'argument', 'args')::pg_catalog.text,
                    hint = 'Pass args, or declare the handler CALLED ON NULL INPUT.';
            end if;
        end if;
        execute
            'select array[' operator(pg_catalog.||) pg_catalog.left(
                signature,
                case
                    when pg_catalog.right(signature, 7) operator(pg_catalog.=) '(jsonb)' then -7
                    when pg_catalog.right(signature, 9) operator(pg_catalog.=) '("jsonb")' then -9
                    when pg_catalog.right(signature, 18) operator(pg_catalog.=) '(pg_catalog.jsonb)' then -18
                    else -22
                end
            ) operator(pg_catalog.||) '($1)::idem.response]'
        into strict responses using run.args;
        return idem.run_end(run.scope, run.key, run.fingerprint, answer.token, responses[1], run.policy);
    end if;
    raise exception using
        errcode = '22023',
        message = 'the handler must be a function of one jsonb that returns idem.response',
        detail = pg_catalog.jsonb_build_object(
            'code', 'handler_unfit', 'argument', 'handler'
        )::pg_catalog.text,
        hint = 'Create it as function pay(args jsonb) returns idem.response, and pass ''pay(jsonb)''.';
end
$$;

comment on function idem.run(text, text, bytea, regprocedure, jsonb, text) is
'Reserves, calls handler(args) with the caller''s rights, and stores the idem.response it returns, whatever its status, in one call and one write. Outcome started: the handler ran now; status, headers and body are its own. A handler that raises rolls everything back and leaves the key free. Errors: IK001, IK002, IK006, 22023, 42846.';

revoke all on function idem.run(text, text, bytea, regprocedure, jsonb, text) from public;

-- sql/core/once.sql
-- A mark is a finished row without an owner: it has no token. Nearly every message
-- is a new one, so the lock is tried first and one look under it is enough; without the lock it still finds duplicates.
create or replace function idem.once(scope text, key text, policy text default 'messages') returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    settings record;
    look record;
begin
    select
        p.name, p.ttl, p.min_retention, p.scopes_bound, idem_private.clock() as at,
        idem_private.key_fits(once.scope, once.key, p.key_min_length, p.key_max_length, p.key_pattern) as fits,
        pg_try_advisory_xact_lock(idem_private.lock_id(once.scope, once.key)) as locked
    into settings
    from idem_private.policy as p
    where p.name = coalesce(once.policy, 'messages') collate "C";
    select r.policy, r.expires_at, r.completed_at into look
    from idem_private.reservation as r
    where r.scope = once.scope collate "C" and r.key = once.key collate "C";

    -- Anything but a new key.
    if found or (settings.fits and settings.locked and not settings.scopes_bound) is not true
        or current_setting('transaction_isolation') <> 'read committed' then
        if settings.fits is not true or settings.scopes_bound then
            perform idem_private.check_scope(once.scope);
            perform idem_private.check_call(once.scope, once.key, coalesce(once.policy, 'messages'));
        end if;
        if look.completed_at is not null and look.policy = settings.name
            and settings.at < idem_private.real_expiry(look.expires_at, look.completed_at, settings.min_retention) then
            -- The quick yes for a redelivery.
            return 'duplicate';
        elsif look.policy is not null then
            return idem_private.mark_existing(once.scope, once.key, settings.name, settings.ttl);
        elsif not settings.locked then
            return 'in_progress';
        end if;
        perform idem_private.require_fresh_snapshot(once.scope, once.key);
    end if;
    insert into idem_private.reservation (
        scope, key, policy, created_at, expires_at, owned_at, owner_xid, attempt, leased, completed_at
    ) values (
        once.scope, once.key, settings.name, settings.at, settings.at + settings.ttl, clock_timestamp(),
        pg_current_xact_id(), 1, false, settings.at
    )
    on conflict do nothing;
    return case when found then 'first' else 'in_progress' end;
end
$$;

comment on function idem.once(text, text, text) is
'Marks a message as handled, in the caller''s transaction: first (do the work, then commit), duplicate (acknowledge it), or in_progress (another transaction is at it, or its outcome is unknown: do not acknowledge). Scope is the consumer. Errors: IK001, IK006.';

revoke all on function idem.once(text, text, text) from public;

-- sql/core/once_many.sql
-- Each key is treated as by idem.once, in few statements for all of them. Nothing here waits, so two batches cannot
-- deadlock: locks are tried, in the order of the keys, and rows that are locked are skipped.
create or replace function idem.once_many(scope text, keys text[], policy text default 'messages')
returns table (ordinal int, key text, outcome text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    settings idem_private.policy;
    at timestamptz;
    -- Keys are compared byte by byte, whatever the collation of the argument.
    wanted_keys constant text[] collate "C" := once_many.keys;
    candidate text collate "C";
    locked text[] collate "C";
    firsts text[] collate "C";
    duplicates text[] collate "C";
begin
    perform idem_private.check_scope(once_many.scope);
    select p.* into settings
    from idem_private.policy as p
    where p.name = coalesce(once_many.policy, 'messages') collate "C";
    if settings.name is null then
        perform idem_private.check_call(once_many.scope, '-', coalesce(once_many.policy, 'messages'));
    end if;
    perform idem_private.check_key(once_many.scope, '-', 1, 1024, '');
    if cardinality(wanted_keys) > settings.max_batch then
        raise exception using
            errcode = 'IK007',
            message = format(
                'a batch of %s keys, where the policy allows %s', cardinality(wanted_keys), settings.max_batch
            ),
            detail = jsonb_build_object(
                'code', 'batch_too_large', 'argument', 'keys', 'limit', settings.max_batch
            )::text,
            hint = 'Split the batch: each key takes a slot of the lock table. Or raise max_batch of the policy.';
    end if;
    for candidate in
        select wanted.key
        from unnest(wanted_keys) as wanted (key)
        where idem_private.key_fits(
            once_many.scope, wanted.key, settings.key_min_length, settings.key_max_length, settings.key_pattern
        ) is not true
    loop
        perform idem_private.check_key(
            once_many.scope, candidate, settings.key_min_length, settings.key_max_length, settings.key_pattern
        );
    end loop;

    with missing as materialized (
        select distinct wanted.key
        from unnest(wanted_keys) as wanted (key)
        where not exists (
            select from idem_private.reservation as r
            where r.scope = once_many.scope collate "C" and r.key = wanted.key
        )
        order by 1
    )
    select array_agg(missing.key) into locked
    from missing
    where pg_try_advisory_xact_lock(idem_private.lock_id(once_many.scope, missing.key));

    if current_setting('transaction_isolation') <> 'read committed' then
        perform idem_private.require_fresh_snapshot(once_many.scope, held.key) from unnest(locked) as held (key);
    end if;
    at := idem_private.clock();
    with marked as (
        insert into idem_private.reservation as r (
            scope, key, policy, created_at, expires_at, owned_at, owner_xid, attempt, leased, completed_at
        )
        select
            once_many.scope, held.key, settings.name, at, at + settings.ttl, clock_timestamp(), pg_current_xact_id(),
            1, false, at
        from unnest(locked) as held (key)
        where not exists (
            select from idem_private.reservation as r
            where r.scope = once_many.scope collate "C" and r.key = held.key
        )
        on conflict do nothing
        returning r.key
    )
    select coalesce(array_agg(marked.key), '{}') into firsts
    from marked;

    -- The quick yes for redeliveries.
    select coalesce(array_agg(r.key), '{}') into duplicates
    from idem_private.reservation as r
    where r.scope = once_many.scope collate "C" and r.key = any(wanted_keys) and r.key <> all(firsts)
        and r.completed_at is not null and r.policy = settings.name
        and at < idem_private.real_expiry(r.expires_at, r.completed_at, settings.min_retention);

    for candidate in
        select r.key
        from idem_private.reservation as r
        where r.scope = once_many.scope collate "C" and r.key = any(wanted_keys)
            and r.key <> all(firsts || duplicates)
    loop
        case idem_private.mark_existing(once_many.scope, candidate, settings.name, settings.ttl)
            when 'first' then firsts := firsts || candidate;
            when 'duplicate' then duplicates := duplicates || candidate;
            else null;
        end case;
    end loop;

    return query
    select
        wanted.ordinal::int,
        wanted.key,
        case
            when wanted.key = any(duplicates) then 'duplicate'
            when wanted.key <> all(firsts) then 'in_progress'
            when wanted.ordinal = min(wanted.ordinal) over (partition by wanted.key) then 'first'
            else 'duplicate'
        end
    from unnest(wanted_keys) with ordinality as wanted (key, ordinal)
    order by wanted.ordinal;
end
$$;

comment on function idem.once_many(text, text[], text) is
'idem.once for a batch: one row per element, in order; a key that comes again in the batch is a duplicate there. Never waits. Errors: IK001, IK006, IK007 above max_batch of the policy.';

revoke all on function idem.once_many(text, text[], text) from public;

-- sql/core/once_undo.sql
create or replace function idem.once_undo(scope text, keys text[]) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    -- Keys are compared byte by byte, whatever the collation of the argument.
    wanted_keys constant text[] collate "C" := once_undo.keys;
    undone int;
begin
    perform idem_private.check_scope(once_undo.scope);
    perform idem_private.check_key(once_undo.scope, '-', 1, 1024, '');
    delete from idem_private.reservation as r
    where r.scope = once_undo.scope collate "C" and r.key = any(wanted_keys)
        and r.token is null
        -- idem_private.owned_here, written out: Citus takes no function of columns that is not immutable in a delete
        and r.owner_xid = pg_current_xact_id_if_assigned() and r.owned_at >= transaction_timestamp();
    get diagnostics undone = row_count;
    return undone;
end
$$;

comment on function idem.once_undo(text, text[]) is
'Takes back marks of idem.once and idem.once_many that the present transaction has made, as for one message of a batch that failed; returns how many. Marks of other transactions are not touched. Errors: IK001.';

revoke all on function idem.once_undo(text, text[]) from public;

-- sql/recovery/claim_lapsed.sql
-- What the look has found may be locked by its owner, or gone, or alive again. So each row is locked only where it can
-- be at once, and only if its newest version is lapsed by the clock at that moment; the list is read again under the
-- lock.
create or replace function idem.claim_lapsed(
    max_rows int default 10,
    lease interval default null,
    policy text default null,
    scope text default null,
    key text default null
) returns setof idem.lapsed_reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    at timestamptz := idem_private.clock();
    left_over int := coalesce(claim_lapsed.max_rows, 10);
    look record;
    held idem_private.reservation;
    noted idem_private.unfinished;
    settings idem_private.policy;
    prefixes constant text[] := idem_private.bound_prefixes();
begin
    perform idem_private.check_scope(claim_lapsed.scope);
    claim_lapsed.lease := idem_private.check_interval('lease', claim_lapsed.lease);
    perform idem_private.check_claim(left_over, claim_lapsed.policy, claim_lapsed.scope, claim_lapsed.key);

    for look in
        select k.scope, k.key
        from idem_private.lapsed_keys(at, prefixes, claim_lapsed.policy, claim_lapsed.scope, claim_lapsed.key) as k
    loop
        exit when left_over = 0;
        begin
            select r.* into held
            from idem_private.reservation as r
            where r.scope = look.scope and r.key = look.key and r.completed_at is null and r.released_at is null
                -- idem_private.phase, written out: Citus hands no whole row to a function
                and case
                    when r.leased then r.lease_until <= idem_private.clock()
                    else not idem_private.owned_here(r.owner_xid, r.owned_at)
                end
            for update skip locked;
            continue when not found;
            settings := idem_private.policy_of(held.policy);
            at := idem_private.clock();
            select u.* into noted
            from idem_private.unfinished as u
            where u.scope = held.scope and u.key = held.key;
            continue when not idem_private.may_claim(
                coalesce(noted.claims, 0), settings.max_claims, noted.claim_after, at
            );
            return next idem_private.claim(held, coalesce(claim_lapsed.lease, settings.lease), at);
            left_over := left_over - 1;
        exception when others then
            -- A bad row would keep resolvers from all others for ever. What is wrong with the moment or with the whole
            -- server, and not with the row, is raised.
            if sqlstate ~ '^(25|40|53|55|57|58)' then
                raise;
            end if;
            raise warning using
                message = 'a lapsed key cannot be claimed',
                detail = jsonb_build_object(
                    'code', 'not_claimed', 'scope', look.scope, 'key', look.key, 'sqlstate', sqlstate
                )::text,
                hint = 'Other keys are not affected. Find out what raises this SQLSTATE when its row is written.';
        end;
    end loop;
end
$$;

comment on function idem.claim_lapsed(int, interval, text, text, text) is
'Hands lapsed keys to a resolver, the longest lapsed first: each with a new token and lease, to be ended by complete, release or defer after finding out what happened. Skips what others hold, what asked for a delay, and what has been claimed max_claims times. Errors: IK001, IK006, 22023, 42501.';

revoke all on function idem.claim_lapsed(int, interval, text, text, text) from public;

-- sql/recovery/resolve.sql
-- Locks the row first, which may mean to wait, and judges it by the clock after that. Whatever the decision, the token
-- is replaced: an owner or a resolver that comes back learns that it is not its key any more.
create or replace function idem.resolve(
    scope text,
    key text,
    action text,
    reason text,
    attempt int default null,
    force boolean default false,
    status int default null,
    headers jsonb default null,
    body bytea default null
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
    settings idem_private.policy;
    new_token constant uuid := gen_random_uuid();
    at timestamptz;
    phase text;
begin
    perform idem_private.check_scope(resolve.scope);
    perform idem_private.check_resolution(
        resolve.scope, resolve.key, resolve.action, resolve.reason, resolve.status, resolve.headers, resolve.body
    );
    select r.* into held
    from idem_private.reservation as r
    where r.scope = resolve.scope collate "C" and r.key = resolve.key collate "C"
    for update;
    settings := idem_private.policy_of(held.policy);
    at := idem_private.clock();
    phase := idem_private.phase(held, settings.min_retention, settings.tombstone, at);
    if held.scope is null or phase = 'absent' then
        perform idem_private.refuse_absent(resolve.scope, resolve.key);
    elsif resolve.attempt <> held.attempt then
        return false;
    elsif phase in ('completed', 'expired')
        or phase <> 'lapsed' and not (held.leased and coalesce(resolve.force, false)) then
        perform idem_private.refuse_resolution(held, phase);
    end if;

    if phase = 'lapsed' then
        perform idem_private.record_lapse(held);
    end if;
    perform idem_private.record_event(
        held, 'resolved', at, resolve.reason,
        jsonb_build_object(
            'action', resolve.action, 'status', resolve.status, 'forced', nullif(phase <> 'lapsed', false)
        )
    );
    if resolve.action = 'complete' then
        update idem_private.reservation as r
        set
            token = new_token,
            released_at = null,
            completed_at = at,
            status = resolve.status,
            headers = resolve.headers,
            body = resolve.body
        where r.scope = held.scope and r.key = held.key;
        delete from idem_private.unfinished as u where u.scope = held.scope and u.key = held.key;
    else
        perform idem_private.free_key(held, at, resolve.action = 'retry', gen_random_uuid());
    end if;
    perform idem_private.commit_durably();
    return true;
end
$$;

comment on function idem.resolve(text, text, text, text, int, boolean, int, jsonb, bytea) is
'An operator decides about a lapsed key, for a reason that is recorded with the role: complete stores the given answer, release says that the work did not happen, retry lets the next reserve start the next attempt. False: the key is at another attempt than the given one. Force: though somebody may be at work on it. Errors: IK001, IK003, IK004, 22023.';

revoke all on function idem.resolve(text, text, text, text, int, boolean, int, jsonb, bytea) from public;

-- sql/recovery/history.sql
-- The row tells how a life of the key began and how it ended; what came between has been noted. A lapse that nobody has
-- acted on yet, or after which the owner completed all the same, follows from the row too.
create or replace function idem.history(scope text, key text)
returns table (at timestamptz, event text, attempt int, by_role name, reason text, detail jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
begin
    perform idem_private.check_scope(history.scope);
    perform idem_private.check_key(history.scope, history.key, 1, 1024, '');
    select r.* into held
    from idem_private.reservation as r
    where r.scope = history.scope collate "C" and r.key = history.key collate "C";
    return query
    with noted as (
        select e.*
        from idem_private.event as e
        where e.scope = history.scope collate "C" and e.key = history.key collate "C"
    ),

    stored as (
        select
            held.created_at as life,
            held.attempt,
            held.policy,
            held.completed_at,
            held.status,
            case
                when idem_private.is_lapsed(held, idem_private.clock())
                    or held.leased and held.lease_until < coalesce(held.released_at, held.completed_at)
                    then idem_private.lapsed_at(held)
            end as lapsed_at
        where held.scope is not null
    ),

    told as (
        select
            lives.life, lives.life as at, 0 as part, 0::bigint as number, 'reserved' as event, 1 as attempt,
            null::name as by_role, null as reason, jsonb_build_object('policy', s.policy) as detail
        from (select n.life from noted as n union select s.life from stored as s) as lives
        left join stored as s on lives.life = s.life
        union all
        select n.life, n.at, 1, n.number, n.event, n.attempt, n.by_role, n.reason, n.detail
        from noted as n
        union all
        select s.life, s.lapsed_at, 2, 0, 'lapsed', s.attempt, null, null, null
        from stored as s
        where s.lapsed_at is not null and not exists (
            select from noted as n
            where n.life = s.life and n.event in ('lapsed', 'deferred') and n.at >= s.lapsed_at
        )
        union all
        select s.life, s.completed_at, 3, 0, 'completed', s.attempt, null, null, jsonb_build_object('status', s.status)
        from stored as s
        where s.completed_at is not null
    )

    select t.at, t.event, t.attempt, t.by_role, t.reason, nullif(jsonb_strip_nulls(t.detail), '{}')
    from told as t
    order by t.life, t.at, t.part, t.number;
end
$$;

comment on function idem.history(text, text) is
'What happened to a key, in order: reserved, lapsed, taken_over, claimed, deferred, released, resolved, completed; with the role that did it and its reason. No token, no answer. Errors: IK001.';

revoke all on function idem.history(text, text) from public;

-- sql/request/fingerprint.sql
create or replace function idem.fingerprint(
    method text,
    path text,
    body bytea default null,
    content_type text default null,
    ignore text[] default null,
    include text[] default null
) returns bytea
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.check_request(fingerprint.method, fingerprint.path);
    perform idem_private.check_pointers('ignore', fingerprint.ignore);
    perform idem_private.check_pointers('include', fingerprint.include);
    return (
        select r.fingerprint
        from idem_private.read_request(
            fingerprint.method collate "C",
            fingerprint.path,
            fingerprint.body,
            fingerprint.content_type,
            fingerprint.ignore,
            fingerprint.include
        ) as r
    );
end
$$;

comment on function idem.fingerprint(text, text, bytea, text, text[], text[]) is
'Digest of a request under the secret of this database. JSON counts by value, forms by their fields, anything else by its bytes; ignore and include are JSON pointers. Errors: 22023.';

revoke all on function idem.fingerprint(text, text, bytea, text, text[], text[]) from public;

-- sql/request/fingerprint_fields.sql
create or replace function idem.fingerprint_fields(
    body bytea,
    content_type text default null,
    ignore text[] default null,
    include text[] default null
) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.check_pointers('ignore', fingerprint_fields.ignore);
    perform idem_private.check_pointers('include', fingerprint_fields.include);
    return (
        select r.fields
        from idem_private.read_request(
            null,
            null,
            fingerprint_fields.body,
            fingerprint_fields.content_type collate "C",
            fingerprint_fields.ignore,
            fingerprint_fields.include
        ) as r
    );
end
$$;

comment on function idem.fingerprint_fields(bytea, text, text[], text[]) is
'Short hashes of the leaves of a body by their JSON pointers, for the argument fields of reserve. Errors: 22023.';

revoke all on function idem.fingerprint_fields(bytea, text, text[], text[]) from public;

-- sql/http/http_reserve.sql
-- idem.reserve decides; this reads the request before it and words the answer after it.
create or replace function idem.http_reserve(
    scope text,
    key_header text,
    method text,
    path text,
    body bytea default null,
    content_type text default null,
    mode text default 'atomic',
    lease interval default null,
    state jsonb default null,
    token uuid default null,
    policy text default 'default'
) returns idem.http_reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    settings idem_private.policy;
    key text;
    request record;
    held idem.reservation;
    answer idem.response;
    outcome text;
begin
    perform idem_private.check_scope(http_reserve.scope);
    perform idem_private.check_request(http_reserve.method, http_reserve.path);
    select p.* into settings
    from idem_private.policy as p
    where p.name = coalesce(http_reserve.policy, 'default') collate "C";
    if not found then
        perform idem_private.check_call(http_reserve.scope, null, http_reserve.policy);
    end if;

    if not upper(http_reserve.method collate "C") = any(settings.methods)
        or (http_reserve.key_header is null and not settings.required) then
        outcome := 'unprotected';
    elsif http_reserve.key_header is null then
        outcome := 'missing';
    else
        key := idem_private.key_of_header(http_reserve.key_header collate "C");
        if idem_private.key_fits(
            'any', key, settings.key_min_length, settings.key_max_length, settings.key_pattern
        ) is not true and not idem_private.header_fits(key, settings) then
            outcome := 'invalid';
        end if;
    end if;
    if outcome is not null then
        if outcome <> 'unprotected' then
            answer := idem_private.http_problem(outcome, settings, null, null);
        end if;
        return row(
            outcome, null, null, null, null, null, null, answer.status, answer.headers, answer.body
        )::idem.http_reservation;
    end if;

    select r.fingerprint, r.fields into request
    from idem_private.read_request(
        http_reserve.method collate "C",
        http_reserve.path,
        http_reserve.body,
        http_reserve.content_type,
        settings.ignore,
        settings.include
    ) as r;
    held := idem.reserve(
        http_reserve.scope, key, request.fingerprint, http_reserve.mode, http_reserve.lease, request.fields,
        http_reserve.state, http_reserve.token, http_reserve.policy
    );
    if held.outcome = 'replay' then
        -- What was stored by idem.complete or idem.once may have no status, which here would mean: do the work.
        answer.status := coalesce(held.status, case when held.body is null then 204 else 200 end);
        answer.headers := coalesce(held.headers, '[]')
            || jsonb_build_array(jsonb_build_array(idem_private.replay_header(settings), 'true'));
        answer.body := held.body;
    elsif held.outcome <> 'started' then
        answer := idem_private.http_problem(held.outcome, settings, held.mismatched, held.retry_after);
    end if;
    return row(
        held.outcome, key, held.token, held.attempt, held.downstream_key, held.recovery_point, held.state,
        answer.status, answer.headers, answer.body
    )::idem.http_reservation;
end
$$;

comment on function idem.http_reserve(
    text, text, text, text, bytea, text, text, interval, jsonb, uuid, text
) is
'idem.reserve for an HTTP request, from the value of its Idempotency-Key header on. Status null: do the work, then call http_complete; otherwise send status, headers and body. Outcome: those of reserve, and missing, invalid, unprotected. Errors: IK001 (scope only), IK004, IK006, 22023.';

revoke all on function idem.http_reserve(
    text, text, text, text, bytea, text, text, interval, jsonb, uuid, text
) from public;

-- sql/http/http_complete.sql
-- What a status means is decided here, and done by complete, release and defer. The row is read without a lock: the
-- mode of a token never changes, and each of them is compare-and-set on it; nor does it change whether a resolver has
-- claimed what the token owns.
create or replace function idem.http_complete(
    scope text,
    key text,
    token uuid,
    status int,
    headers jsonb default null,
    body bytea default null
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held_leased boolean;
    held_policy text;
    settings idem_private.policy;
begin
    perform idem_private.check_scope(http_complete.scope);
    perform idem_private.check_answer(http_complete.status, http_complete.headers);
    if http_complete.key is null and http_complete.token is null then
        return 'unprotected';
    end if;
    select r.leased, r.policy into held_leased, held_policy
    from idem_private.reservation as r
    where r.scope = http_complete.scope collate "C" and r.key = http_complete.key collate "C"
        and r.token = http_complete.token;
    if not found then
        perform idem_private.refuse_owner_call(http_complete.scope, http_complete.key, http_complete.token, false);
    end if;
    settings := idem_private.policy_of(held_policy);

    if settings.profile <> 'stripe' then
        if http_complete.status = any(settings.release_statuses) and not exists (
            -- A resolver was rejected by this status, which says nothing about the attempt that it asks for.
            select from idem_private.unfinished as u
            where u.scope = http_complete.scope collate "C" and u.key = http_complete.key collate "C" and u.claims > 0
        ) then
            if not held_leased then
                return 'rollback';
            end if;
            perform idem.release(http_complete.scope, http_complete.key, http_complete.token);
            return 'released';
        elsif http_complete.status = 408 or http_complete.status >= 500
            or http_complete.status = any(settings.release_statuses) then
            if not held_leased then
                return 'rollback';
            end if;
            perform idem.defer(
                http_complete.scope, http_complete.key, http_complete.token,
                reason => format('HTTP status %s', http_complete.status)
            );
            return 'deferred';
        end if;
    end if;

    if octet_length(http_complete.body) > settings.max_body_bytes
        or (http_complete.body is null and exists (
            select from jsonb_array_elements(http_complete.headers) as h (pair)
            where lower((h.pair ->> 0) collate "C") = 'idempotency-body-omitted'
        )) then
        http_complete.body := null;
        http_complete.headers := coalesce(idem_private.stored_headers(http_complete.headers, settings), '[]')
            || '[["Idempotency-Body-Omitted", "true"]]';
    else
        http_complete.headers := idem_private.stored_headers(http_complete.headers, settings);
    end if;
    if idem.complete(
        http_complete.scope, http_complete.key, http_complete.token, http_complete.status, http_complete.headers,
        http_complete.body
    ) then
        return 'stored';
    end if;
    return 'repeated';
end
$$;

comment on function idem.http_complete(text, text, uuid, int, jsonb, bytea) is
'Ends a reservation of http_reserve by the answer that is sent: stored, released, deferred, repeated (roll back), rollback (roll back) or unprotected. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.http_complete(text, text, uuid, int, jsonb, bytea) from public;

-- sql/http/policy_document.sql
create or replace function idem.policy_document(policy text default 'default') returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    settings idem_private.policy;
begin
    select p.* into settings
    from idem_private.policy as p
    where p.name = coalesce(policy_document.policy, 'default') collate "C";
    if not found then
        perform idem_private.check_call(null, null, policy_document.policy);
    end if;
    return jsonb_build_object(
        'policy', settings.name,
        'profile', settings.profile,
        'header', 'Idempotency-Key',
        'required', settings.required,
        'methods', to_jsonb(settings.methods),
        'key', jsonb_build_object(
            'min_length', settings.key_min_length,
            'max_length', settings.key_max_length,
            'pattern', settings.key_pattern,
            'syntax', 'a structured field string, or its characters alone'
        ),
        'retention_seconds', extract(epoch from settings.ttl)::bigint,
        'min_retention_seconds', extract(epoch from settings.min_retention)::bigint,
        'tombstone_seconds', extract(epoch from settings.tombstone)::bigint,
        'fingerprint', jsonb_build_object(
            'parts', jsonb_build_array('method', 'path', 'content_type', 'body'),
            'ignore', to_jsonb(coalesce(settings.ignore, '{}')),
            'include', to_jsonb(settings.include)
        ),
        'answers', (
            select jsonb_object_agg(
                p.outcome,
                jsonb_strip_nulls(jsonb_build_object(
                    'status', p.status,
                    'code', p.code,
                    'type', case when settings.profile = 'stripe' then p.stripe_type
                        else coalesce(settings.problem_type_base || p.code, 'about:blank') end,
                    'title', p.title,
                    'detail', p.detail
                ))
            )
            from idem_private.http_problems(settings.profile) as p
            where (p.outcome <> 'missing' or settings.required)
                and (p.outcome <> 'expired' or settings.tombstone > interval '0')
        ),
        'replay', jsonb_build_object(
            'header', idem_private.replay_header(settings),
            'omitted_body_header', 'Idempotency-Body-Omitted',
            'max_body_bytes', settings.max_body_bytes,
            'headers_not_repeated', to_jsonb(settings.drop_headers)
        ),
        'statuses_not_stored', case
            when settings.profile = 'stripe' then '[]'
            else to_jsonb(array(
                select s.status::text from unnest(settings.release_statuses || 408) as s (status)
                group by s.status order by s.status
            ) || '5xx'::text)
        end
    );
end
$$;

comment on function idem.policy_document(text) is
'What an API publishes about its idempotency keys under a policy. Errors: IK006.';

revoke all on function idem.policy_document(text) from public;

-- sql/operation/version.sql
create or replace function idem.version() returns text
language sql immutable security definer set search_path = pg_catalog, pg_temp as $$
    select '0.1.0'::text
$$;

comment on function idem.version() is 'Version of pyidem that is installed in this database.';

revoke all on function idem.version() from public;

-- sql/operation/enable_testing.sql
create or replace function idem.enable_testing() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    owner_of_database name;
begin
    select pg_get_userbyid(d.datdba) into owner_of_database
    from pg_catalog.pg_database as d
    where d.datname = current_database();
    if not pg_has_role(idem_private.caller(), owner_of_database, 'MEMBER') then
        raise exception using
            errcode = '42501',
            message = 'only the owner of the database may enable testing',
            detail = jsonb_build_object('code', 'not_the_database_owner', 'owner', owner_of_database)::text,
            hint = 'Testing lets every session move its clock; it is meant for databases that hold nothing of value.';
    end if;
    insert into idem_private.testing (database, enabled_by)
    select d.oid, idem_private.caller()
    from pg_catalog.pg_database as d
    where d.datname = current_database()
    on conflict (database) do nothing;
end
$$;

comment on function idem.enable_testing() is
'Lets this database honour idem.clock_offset and idem.single_transaction, for test suites; only by its owner. Errors: 42501.';

revoke all on function idem.enable_testing() from public;

-- sql/operation/disable_testing.sql
create or replace function idem.disable_testing() returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    delete from idem_private.testing
$$;

comment on function idem.disable_testing() is
'Ends what idem.enable_testing began.';

revoke all on function idem.disable_testing() from public;

-- sql/operation/grant_client.sql
create or replace function idem.grant_client(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.give_access(grant_client.role, 'client');
end
$$;

comment on function idem.grant_client(name) is
'Lets a role make, finish and look up reservations: what an application needs, and nothing else. Errors: 42704.';

revoke all on function idem.grant_client(name) from public;

-- sql/operation/grant_resolver.sql
create or replace function idem.grant_resolver(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.give_access(grant_resolver.role, 'resolver');
end
$$;

comment on function idem.grant_resolver(name) is
'Lets a role claim lapsed keys and end them: what a sweeper needs, and nothing else. Errors: 42704.';

revoke all on function idem.grant_resolver(name) from public;

-- sql/operation/grant_monitor.sql
create or replace function idem.grant_monitor(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.give_access(grant_monitor.role, 'monitor');
end
$$;

comment on function idem.grant_monitor(name) is
'Lets a role see how pyidem and its keys stand, and change nothing. Errors: 42704.';

revoke all on function idem.grant_monitor(name) from public;

-- sql/operation/grant_operator.sql
create or replace function idem.grant_operator(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform idem_private.give_access(grant_operator.role, 'operator');
end
$$;

comment on function idem.grant_operator(name) is
'Lets a role call and change everything but rights and testing: for whoever runs pyidem from day to day. Errors: 42704.';

revoke all on function idem.grant_operator(name) from public;

-- sql/operation/revoke_access.sql
create or replace function idem.revoke_access(role name) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    object text;
    kept text[];
begin
    perform idem_private.check_role(revoke_access.role);
    if revoke_access.role collate "C" = current_user then
        raise exception using
            errcode = '22023',
            message = 'the owner keeps its access',
            detail = jsonb_build_object('code', 'role_is_the_owner', 'argument', 'role')::text,
            hint = 'Name the role that is to lose its access. To remove pyidem, run uninstall.sql.';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('pyidem.migrate', 0));
    for object in
        select granted.object from idem_private.granted_objects(revoke_access.role collate "C") as granted (object)
    loop
        execute format('revoke all on %s from %I cascade', object, revoke_access.role);
    end loop;
    delete from idem_private.access as a where a.role = quote_ident(revoke_access.role)::regrole;
    delete from idem_private.scope_binding as b where b.role = quote_ident(revoke_access.role)::regrole;
    if idem_private.is_distributed() then
        perform idem_private.renew_scopes_bound();
    end if;

    -- An owner's REVOKE leaves alone what somebody with grant option has given.
    select array_agg(granted.object order by granted.object) into kept
    from idem_private.granted_objects(revoke_access.role collate "C") as granted (object);
    if kept is not null then
        raise exception using
            errcode = '2BP01',
            message = format('role %I has access that another role has granted', revoke_access.role),
            detail = jsonb_build_object('code', 'granted_by_another', 'objects', kept)::text,
            hint = 'Nothing was revoked. First revoke the access of the role that granted it.';
    end if;
end
$$;

comment on function idem.revoke_access(name) is
'Takes from a role all access to both schemas, whoever of the owner''s granted it and how, and its bindings, so that it can be dropped. Errors: 22023, 25001, 2BP01, 42704.';

revoke all on function idem.revoke_access(name) from public;

-- sql/operation/bind_scope.sql
create or replace function idem.bind_scope(role name, prefix text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    max_length constant int := 255;
begin
    perform idem_private.check_role(bind_scope.role);
    if coalesce(length(bind_scope.prefix), 0) not between 1 and max_length
        or bind_scope.prefix collate "C" ~ '^\s+$' or bind_scope.prefix collate "C" ~ '[\x01-\x1f\x7f-\x9f]' then
        raise exception using
            errcode = '22023',
            message = 'prefix must be what a scope can begin with',
            detail = jsonb_build_object(
                'code', 'prefix_unfit', 'argument', 'prefix', 'limit', max_length
            )::text,
            hint = 'A scope is 1 to 255 characters, any but control characters, and not blank.';
    end if;
    insert into idem_private.scope_binding (role, prefix)
    values (quote_ident(bind_scope.role)::regrole, bind_scope.prefix)
    on conflict do nothing;
    if idem_private.is_distributed() then
        perform idem_private.renew_scopes_bound();
    end if;
end
$$;

comment on function idem.bind_scope(name, text) is
'From now on a role names only scopes that equal the prefix or continue it, here and wherever else it is bound. Errors: 22023, 25001, 42704.';

revoke all on function idem.bind_scope(name, text) from public;

-- sql/operation/unbind_scope.sql
create or replace function idem.unbind_scope(role name, prefix text default null) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform idem_private.check_role(unbind_scope.role);
    delete from idem_private.scope_binding as b
    where b.role = quote_ident(unbind_scope.role)::regrole
        and (unbind_scope.prefix is null or b.prefix = unbind_scope.prefix collate "C");
    if idem_private.is_distributed() then
        perform idem_private.renew_scopes_bound();
    end if;
end
$$;

comment on function idem.unbind_scope(name, text) is
'Takes back a binding of idem.bind_scope, or all bindings of a role; one that has none left may name any scope. Errors: 25001, 42704.';

revoke all on function idem.unbind_scope(name, text) from public;

-- sql/operation/purge.sql
-- One batch, in the order of the index on expiry. Rows are locked where nobody else has them, judged by their newest
-- version, and written by primary key. A row that is due in the index but must stay (unfinished, kept by
-- min_retention, or a tombstone) is put off to the time at which it could go, so that no later batch meets it before.
-- That is a time for purge alone: what a row means to an attempt is decided when it is read.
--
-- A dead index entry is stepped over by every scan until it is vacuumed, so idem.purge_all and pyidem purge let each
-- batch begin where the last one ended: that is what both settings are for, which at worst make a batch skip rows.
--
-- The plan is the one meant here whatever the statistics say, which change with every batch.
create or replace function idem.purge(max_rows int default 10000) returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
    most constant int := idem_private.check_max_rows(purge.max_rows);
    longest_wait constant interval := interval '30 days';
    at constant timestamptz := idem_private.clock();
    prefixes constant text[] := idem_private.bound_prefixes();
    from_ constant timestamptz := coalesce(
        nullif(current_setting('idem_private.purge_from', true), '')::timestamptz, timestamptz '-infinity'
    );
    batch record;
    removed bigint := bigint '0';
    caught_up boolean;
begin
    if idem_private.is_distributed() then
        return idem_private.purge_nodes(most, prefixes);
    end if;
    with settings as materialized (
        select p.name, p.min_retention, p.tombstone
        from idem_private.policy as p
        union all
        select p.name, p.min_retention, p.tombstone
        from idem_private.retired_policy as p
        where not exists (select from idem_private.policy as q where q.name = p.name)
    ),

    due as materialized (
        select
            r.scope, r.key, r.policy, r.expires_at, r.expired_at, r.completed_at,
            coalesce(r.purge_at, r.expires_at) as due_at
        from idem_private.reservation as r
        where coalesce(r.purge_at, r.expires_at) >= from_ and coalesce(r.purge_at, r.expires_at) <= at
            and (prefixes is null or idem_private.is_within(r.scope, prefixes))
        order by coalesce(r.purge_at, r.expires_at)
        limit most
        for update skip locked
    ),

    judged as (
        select
            due.scope, due.key, due.due_at, due.expired_at, s.tombstone,
            -- what is not finished cannot expire sooner than if it were finished now
            idem_private.real_expiry(due.expires_at, coalesce(due.completed_at, at), s.min_retention) as expiry,
            case
                when due.completed_at is null then 'unfinished'
                else idem_private.finished_phase(
                    due.expires_at, due.completed_at, due.expired_at, s.min_retention, s.tombstone, at
                )
            end as phase
        from due
        left join settings as s on due.policy = s.name
    )

    select
        count(*) as rows,
        max(j.due_at) as reached,
        array_agg(j.scope) as scopes,
        array_agg(j.key) as keys,
        array_agg(
            case
                when j.phase = 'absent' then 'remove'
                when j.phase = 'expired' and j.expired_at is null then 'clear'
                else 'put off'
            end
        ) as fates,
        array_agg(j.expiry) as expiries,
        array_agg(
            least(
                case when j.phase = 'expired' then coalesce(j.expired_at, j.expiry) + j.tombstone else j.expiry end,
                at + longest_wait
            )
        ) as next_looks
    into batch
    from judged as j;

    if 'remove' = any(batch.fates) then
        delete from idem_private.reservation as r
        using unnest(batch.scopes, batch.keys, batch.fates) as b (scope, key, fate)
        where b.fate = 'remove' and r.scope = b.scope collate "C" and r.key = b.key collate "C";
        get diagnostics removed = row_count;
    end if;
    if 'clear' = any(batch.fates) then
        update idem_private.reservation as r
        set
            expires_at = '-infinity',
            expired_at = b.expiry,
            purge_at = b.next_look,
            fields = null,
            recovery_point = null,
            state = null,
            status = null,
            headers = null,
            body = null
        from unnest(batch.scopes, batch.keys, batch.fates, batch.expiries, batch.next_looks)
            as b (scope, key, fate, expiry, next_look)
        where b.fate = 'clear' and r.scope = b.scope collate "C" and r.key = b.key collate "C";
        removed := removed + cardinality(array_positions(batch.fates, 'clear'));
    end if;
    if 'put off' = any(batch.fates) then
        update idem_private.reservation as r
        set purge_at = b.next_look
        from unnest(batch.scopes, batch.keys, batch.fates, batch.next_looks) as b (scope, key, fate, next_look)
        where b.fate = 'put off' and r.scope = b.scope collate "C" and r.key = b.key collate "C";
    end if;

    caught_up := batch.rows < most and idem_private.purge_events(most) < most;
    perform set_config(
        'idem_private.purge_reached',
        case when caught_up then '' else to_jsonb(coalesce(batch.reached, at)) #>> '{}' end,
        true
    );
    -- A role that is bound to scopes purges for itself.
    if prefixes is null and idem_private.note_purge(at, from_ > '-infinity', removed, caught_up) then
        perform idem_private.trim_job_runs();
    end if;
    return removed;
end
$$;

comment on function idem.purge(int) is
'Removes one batch of finished keys whose retention is over, or makes tombstones of them, and returns how many. Looks at max_rows rows at most, skips what is locked, never waits. Errors: 22023.';

revoke all on function idem.purge(int) from public;

-- sql/operation/purge_all.sql
-- It commits after each batch, which Postgres allows only without a SET clause and without SECURITY DEFINER. So it runs
-- as its caller, and every name and operator in it is qualified against the caller's search_path.
--
-- It rests after each batch for as long as that took, so that a backlog costs others little of the machine.
create or replace procedure idem.purge_all(max_rows int default 10000, max_time interval default '45 seconds')
language plpgsql as $$
declare
    started_at constant pg_catalog.timestamptz := pg_catalog.clock_timestamp();
    longest constant pg_catalog.interval := coalesce(purge_all.max_time, '45 seconds');
    batch_at pg_catalog.timestamptz;
    batch_time pg_catalog.interval;
    reached pg_catalog.text := '';
    removed pg_catalog.int8 := pg_catalog.int8 '0';
begin
    if longest operator(pg_catalog.<=) '0 seconds' or longest operator(pg_catalog.>) '36500 days' then
        raise exception using
            errcode = '22023',
            message = 'max_time must be above zero and at most 36500 days',
            detail = pg_catalog.jsonb_build_object(
                'code', 'interval_out_of_range', 'argument', 'max_time'
            )::pg_catalog.text,
            hint = 'It bounds one run; what is left is for the next one.';
    end if;

    loop
        batch_at := pg_catalog.clock_timestamp();
        perform pg_catalog.set_config('idem_private.purge_from', reached, true);
        removed := removed operator(pg_catalog.+) idem.purge(purge_all.max_rows);
        reached := pg_catalog.current_setting('idem_private.purge_reached');
        commit;
        batch_time := pg_catalog.clock_timestamp() operator(pg_catalog.-) batch_at;
        -- no rest and no batch that could last until after the end
        exit when reached operator(pg_catalog.=) ''
            or pg_catalog.clock_timestamp() operator(pg_catalog.-) started_at
                operator(pg_catalog.+) batch_time operator(pg_catalog.+) batch_time
                operator(pg_catalog.>) longest;
        perform pg_catalog.pg_sleep(pg_catalog.date_part('epoch', batch_time));
    end loop;

    -- Not a notice, which pg_cron would write into the log of the server every minute.
    raise debug using
        message = pg_catalog.format(
            '%s keys removed%s', removed,
            case when reached operator(pg_catalog.=) '' then '' else ', more have expired' end
        ),
        detail = pg_catalog.jsonb_build_object(
            'removed', removed, 'caught_up', reached operator(pg_catalog.=) ''
        )::pg_catalog.text;
end
$$;

comment on procedure idem.purge_all(int, interval) is
'Runs idem.purge until nothing is left or the time is over, and commits after each batch: a CALL of its own, outside any transaction. Any number at once share the work. Errors: 22023.';

revoke all on procedure idem.purge_all(int, interval) from public;

-- sql/operation/purge_state.sql
-- What is due is counted from where the last purge began, if that left nothing: before it there are only index entries
-- of what is gone, and each of them would be stepped over. The plan is that of purge.
create or replace function idem.purge_state()
returns table (started_at timestamptz, ended_at timestamptz, removed bigint, due bigint, due_since timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
    most constant int := 1000;
    at constant timestamptz := idem_private.clock();
    last idem_private.last_purge;
begin
    select p.* into last from idem_private.last_purge as p;
    started_at := last.started_at;
    ended_at := last.ended_at;
    removed := last.removed;
    if to_regclass('idem_private.reservation_expiry') is not null then
        select count(*), min(d.due_at) into due, due_since
        from (
            select coalesce(r.purge_at, r.expires_at) as due_at
            from idem_private.reservation as r
            where coalesce(r.purge_at, r.expires_at) <= at
                and coalesce(r.purge_at, r.expires_at)
                >= case when last.caught_up then last.started_at else timestamptz '-infinity' end
            order by coalesce(r.purge_at, r.expires_at)
            limit most
        ) as d;
    end if;
    return next;
end
$$;

comment on function idem.purge_state() is
'What the last purge did, whoever ran it, and what is left for the next: keys that are due, counted up to 1,000, and since when. Null where that cannot be seen, for want of the index on expiry.';

revoke all on function idem.purge_state() from public;

-- sql/operation/forget.sql
-- Unfinished keys stay: what may have happened is not known, and that must not be forgotten. What somebody has locked
-- is skipped.
create or replace function idem.forget(scope text, key text default null) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    forgotten bigint;
begin
    perform idem_private.check_scope(forget.scope);
    perform idem_private.check_key(forget.scope, coalesce(forget.key, '-'), 1, 1024, '');
    with finished as materialized (
        select r.key
        from idem_private.reservation as r
        where r.scope = forget.scope collate "C" and (forget.key is null or r.key = forget.key collate "C")
            and r.completed_at is not null
        for update skip locked
    )

    delete from idem_private.reservation as r
    using finished as f
    where r.scope = forget.scope collate "C" and r.key = f.key;
    get diagnostics forgotten = row_count;
    perform idem_private.forget_events(forget.scope, forget.key);
    return forgotten;
end
$$;

comment on function idem.forget(text, text) is
'Erases the finished keys of a scope, or one of them, with their history, and returns how many. Unfinished keys stay; what is locked is skipped, so repeat it until nothing is left. Never waits. Errors: IK001.';

revoke all on function idem.forget(text, text) from public;

-- sql/operation/unschedule.sql
create or replace function idem.unschedule() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    job record;
    removed int := 0;
begin
    for job in select * from idem_private.purge_jobs() loop
        if job.username = current_user then
            execute 'select cron.unschedule($1)' using job.jobid;
            removed := removed + 1;
        else
            raise warning using
                message = format('job %s of role %I purges this database and stays', job.jobid, job.username),
                hint = format('To remove it: select cron.unschedule(%s);', job.jobid);
        end if;
    end loop;
    return removed;
end
$$;

comment on function idem.unschedule() is
'Removes what idem.schedule has made, and returns how many jobs that were; no error where there is none.';

revoke all on function idem.unschedule() from public;

-- sql/operation/schedule.sql
-- The job belongs to the owner of pyidem, whoever calls this: so there is one, and whoever removes pyidem finds it.
-- Nothing of pg_cron is named outside dynamic SQL, since it may not be there.
create or replace function idem.schedule(
    schedule text default '* * * * *',
    max_rows int default 10000,
    max_time interval default null,
    job_name text default null
) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    wanted constant text := coalesce(schedule.schedule, '* * * * *');
    name constant text := coalesce(schedule.job_name, 'pyidem purge ' || current_database())::name::text;
    period constant interval := idem_private.cron_period(wanted);
    longest constant interval := coalesce(
        idem_private.check_interval('max_time', schedule.max_time), least(interval '45 seconds', period * 0.75)
    );
    command constant text := format(
        'call idem.purge_all(%s, %L)', idem_private.check_max_rows(schedule.max_rows),
        trim_scale(extract(epoch from longest)) || ' seconds'
    );
    version constant int[] := idem_private.cron_version();
    job record;
    taken boolean;
    id bigint;
begin
    if longest >= period then
        raise exception using
            errcode = '22023',
            message = format('max_time must be shorter than the time between two runs, %s', period),
            detail = jsonb_build_object('code', 'max_time_not_below_period', 'argument', 'max_time')::text,
            hint = 'What a run leaves is for the next one. Leave max_time out for its default.';
    end if;
    if version is null then
        perform idem_private.refuse_without_cron(name, wanted, command);
    end if;
    if wanted ~* 'second' and version < '{1,5}' then
        raise exception using
            errcode = '22023',
            message = format('pg_cron %s knows no schedules in seconds', array_to_string(version, '.')),
            detail = jsonb_build_object('code', 'schedule_unfit', 'argument', 'schedule')::text,
            hint = 'Use ''* * * * *'', once a minute; seconds need pg_cron 1.5.';
    end if;
    if not has_schema_privilege('cron', 'USAGE') or not (
        select r.rolcanlogin from pg_catalog.pg_roles as r where r.rolname = current_user
    ) then
        raise exception using
            errcode = '42501',
            message = format('role %I owns pyidem and cannot have jobs of pg_cron', current_user),
            detail = jsonb_build_object('code', 'no_right_to_cron', 'role', current_user)::text,
            hint = format('It must be able to log in and to use the schema: grant usage on schema cron to %I;', current_user);
    end if;

    execute
        'select exists (
            select from cron.job as j
            where j.jobname = $1 and j.username = current_user and j.jobid <> all($2)
        )'
    into taken
    using name, array(select p.jobid from idem_private.purge_jobs() as p);
    if taken then
        raise exception using
            errcode = '22023',
            message = format('%I has another job of this name', current_user),
            detail = jsonb_build_object('code', 'job_name_taken', 'argument', 'job_name')::text,
            hint = 'Names of jobs are shared by all databases. Choose another job_name.';
    end if;

    for job in select * from idem_private.purge_jobs() loop
        if job.username <> current_user then
            raise warning using
                message = format('job %s of role %I purges this database too', job.jobid, job.username),
                hint = format('One is enough. To remove it: select cron.unschedule(%s);', job.jobid);
        elsif job.jobname is distinct from name or not job.active then
            execute 'select cron.unschedule($1)' using job.jobid;
        end if;
    end loop;
    begin
        execute 'select cron.schedule($1, $2, $3)' into id using name, wanted, command;
    exception when invalid_parameter_value then
        raise exception using
            errcode = '22023',
            message = format('pg_cron does not understand the schedule: %s', sqlerrm),
            detail = jsonb_build_object('code', 'schedule_unfit', 'argument', 'schedule')::text,
            hint = 'Use five fields in cron''s syntax, such as ''* * * * *''; times are in GMT.';
    end;
    return id;
end
$$;

comment on function idem.schedule(text, int, interval, text) is
'Lets pg_cron run idem.purge_all, and returns the id of the job; repeated, it changes that job. Errors: 0A000 where pg_cron is not in this database, 22023, 42501.';

revoke all on function idem.schedule(text, int, interval, text) from public;

-- sql/operation/health.sql
-- A check that is not red needs no fix, but where it cannot tell, it says what would let it.
create or replace function idem.health() returns table (check_name text, ok boolean, detail text, fix text)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select h.check_name, h.ok, h.detail, case when h.ok then null else h.fix end
    from (
        select * from idem_private.health_of_installation()
        union all
        select * from idem_private.health_of_guards()
        union all
        select * from idem_private.health_of_settings()
        union all
        select * from idem_private.health_of_keys()
        union all
        select * from idem_private.health_of_purge()
        union all
        select * from idem_private.health_of_job()
        union all
        select * from idem_private.health_of_server()
    ) as h
$$;

comment on function idem.health() is
'Checks of this installation, each with what to do where it fails: ok is false where something is wrong, null where that cannot be told from here. Changes nothing, and works on a standby.';

revoke all on function idem.health() from public;

-- sql/operation/stats.sql
-- Of finished keys only what the planner knows is read: rows of the table as it counts them, their shares by policy
-- from the statistics that ANALYZE keeps. Sizes are shares of the whole table, its indexes and its stored bodies.
create or replace function idem.stats()
returns table (policy text, state text, keys bigint, oldest timestamptz, bytes bigint, estimated boolean)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
with relation as materialized (
    select t.bytes, t.rows from idem_private.table_size() as t
),

unfinished as (
    select k.policy, k.state, count(*) as keys, min(k.created_at) as oldest
    from idem_private.unfinished_keys() as k
    group by k.policy, k.state
),

common as (
    select v.policy, f.share
    from pg_catalog.pg_stats as s
    cross join lateral unnest(s.most_common_vals::text::text[]) with ordinality as v (policy, place)
    inner join lateral unnest(s.most_common_freqs) with ordinality as f (share, place) using (place)
    where s.schemaname = 'idem_private' and s.tablename = 'reservation' and s.attname = 'policy' and not s.inherited
),

-- what ANALYZE has met too seldom to remember, or has not looked for at all, is of an unknown policy
shares as (
    select c.policy, c.share::numeric from common as c
    union all
    select null, 1 - coalesce(sum(c.share)::numeric, 0) from common as c
),

finished as (
    select
        s.policy,
        greatest(
            0, round(r.rows * s.share - coalesce((select sum(u.keys) from unfinished as u where u.policy = s.policy), 0))
        ) as keys
    from shares as s cross join relation as r
)

select
    listed.policy, listed.state, listed.keys::bigint, listed.oldest,
    coalesce(round(r.bytes * least(1, listed.keys / nullif(r.rows, 0))), 0)::bigint,
    listed.estimated
from (
    select u.policy, u.state, u.keys::numeric, u.oldest, false as estimated from unfinished as u
    union all
    select f.policy, 'finished', f.keys, null, true
    from finished as f
    where f.policy is not null or f.keys > 0
) as listed
cross join relation as r
order by listed.policy, listed.estimated, listed.state
$$;

comment on function idem.stats() is
'Keys per policy and state. Those of unfinished states are counted; finished ones (completed or expired) and all sizes are estimates of the planner, as of the last ANALYZE. Reads no finished key.';

revoke all on function idem.stats() from public;

-- sql/operation/distribute.sql
-- All rows of a scope are on one node, and so is every call on one of its keys: also inside a transaction, since the
-- check of what a transaction has reserved itself goes by its id, which is another one on each node.
--
-- Citus runs no triggers on such tables. What they do for policies and bindings is done by the view idem.policies and
-- by idem.bind_scope instead; what they do at commit nobody does, and a row that was left unfinished is unresolved.
create or replace function idem.distribute() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    distributed constant regclass[] := array[
        'idem_private.reservation', 'idem_private.unfinished', 'idem_private.event'
    ]::regclass[];
    everywhere constant regclass[] := array[
        'idem_private.policy', 'idem_private.retired_policy', 'idem_private.secret', 'idem_private.scope_binding',
        'idem_private.testing'
    ]::regclass[];
    part record;
begin
    perform idem_private.refuse_without_citus();
    if idem_private.is_distributed() then
        return;
    end if;
    -- Tables and functions in one transaction: Citus asks for it.
    perform set_config('citus.multi_shard_modify_mode', 'sequential', true);

    for part in
        select t.tgname as name, t.tgrelid::regclass as table_
        from pg_catalog.pg_trigger as t
        where t.tgrelid = any(distributed || everywhere) and not t.tgisinternal
        order by t.tgname
    loop
        execute format('drop trigger %I on %s', part.name, part.table_);
    end loop;
    execute 'create table idem_private.policy_draft (like idem_private.policy including defaults)';
    execute
        'create trigger check_policy before insert on idem_private.policy_draft
        for each row execute function idem_private.check_policy()';
    execute
        'create trigger check_whole_policy after insert on idem_private.policy_draft
        for each row execute function idem_private.check_whole_policy()';
    execute
        'create trigger revive_policy after insert on idem_private.policy_draft
        for each row execute function idem_private.revive_policy()';
    execute
        'create trigger retire_policy instead of delete on idem.policies
        for each row execute function idem_private.retire_policy()';
    execute
        'create trigger write_policy instead of insert or update or delete on idem.policies
        for each row execute function idem_private.write_policy()';
    for part in
        select c.attname as name, pg_get_expr(d.adbin, d.adrelid) as value
        from pg_catalog.pg_attrdef as d
        inner join pg_catalog.pg_attribute as a on d.adrelid = a.attrelid and d.adnum = a.attnum
        inner join pg_catalog.pg_attribute as c on c.attrelid = 'idem.policies'::regclass and a.attname = c.attname
        where d.adrelid = 'idem_private.policy'::regclass
        order by c.attnum
    loop
        execute format('alter view idem.policies alter column %I set default %s', part.name, part.value);
    end loop;

    execute 'select pg_catalog.create_reference_table(t.name) from unnest($1) as t (name)' using everywhere;
    execute
        'select pg_catalog.create_distributed_table(
            t.name, ''scope'',
            colocate_with => case t.place when 1 then ''none'' else ''idem_private.reservation'' end
        )
        from unnest($1) with ordinality as t (name, place)
        order by t.place'
    using distributed;

    -- What is called for one key, wherever it is called, and what that calls. A function that takes or returns a row of
    -- another table is for the coordinator alone, and so is idem.run, whose handler is.
    for part in
        select
            p.oid::regprocedure as function,
            n.nspname = 'idem' and p.proargnames[1] = 'scope' and p.proname <> 'run' as delegated
        from pg_catalog.pg_proc as p
        inner join pg_catalog.pg_namespace as n on p.pronamespace = n.oid
        where n.nspname in ('idem', 'idem_private') and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype
            and not exists (
                select from pg_catalog.pg_type as t
                inner join pg_catalog.pg_class as c on t.typrelid = c.oid and c.relkind = 'r'
                where t.oid = any(coalesce(p.proallargtypes, p.proargtypes::oid[]) || p.prorettype)
                    and c.oid <> all(distributed || everywhere)
            )
        order by 1
    loop
        if part.delegated then
            execute
                'select pg_catalog.create_distributed_function(
                    $1, distribution_arg_name => ''scope'', colocate_with => ''idem_private.reservation'',
                    force_delegation => true
                )'
            using part.function;
        else
            execute 'select pg_catalog.create_distributed_function($1)' using part.function;
        end if;
    end loop;
    perform idem_private.record_objects();
end
$$;

comment on function idem.distribute() is
'Spreads keys over the workers of a Citus cluster by their scope, with the functions that work on them; on the coordinator, once, while nobody reserves. Repeated, it does nothing. Errors: 0A000.';

revoke all on function idem.distribute() from public;

-- sql/views/policies.sql
create or replace view idem.policies as
select
    p.name,
    p.ttl,
    p.lease,
    p.on_lapse,
    p.max_attempts,
    p.max_claims,
    p.retry_after,
    p.min_retention,
    p.tombstone,
    p.required,
    p.methods,
    p.key_min_length,
    p.key_max_length,
    p.key_pattern,
    p.release_statuses,
    p.drop_headers,
    p.max_body_bytes,
    p.max_batch,
    p.ignore,
    p.include,
    p.profile,
    p.problem_type_base,
    p.replay_header
from idem_private.policy as p;

comment on view idem.policies is
'Named settings. Insert, update and delete here; a change takes effect at the next call. What does not make sense is refused with 22023.';

-- sql/views/keys.sql
-- Whoever reads a view calls the functions in it with his own rights and search_path. So the rule of idem_private.phase
-- is written out here, which is resolved once and for all, and what is called is pinned and called once, or only for
-- a reader that is bound to scopes. A barrier, so that no function in the WHERE of such a reader is shown other keys.
create or replace view idem.keys with (security_barrier) as
select
    r.scope,
    r.key,
    r.policy,
    case when r.leased then 'leased' else 'atomic' end as mode,
    state.outcome,
    r.attempt,
    r.created_at,
    r.lease_until,
    case
        when state.outcome <> 'lapsed' then null
        when r.leased then r.lease_until
        else greatest(r.created_at, r.owned_at)
    end as lapsed_at,
    r.released_at,
    r.completed_at,
    expiry.at as expires_at,
    r.status,
    r.recovery_point,
    u.scope is not null as unfinished,
    p.on_lapse,
    p.max_attempts,
    u.claims,
    p.max_claims,
    u.claim_after,
    u.reason
from idem_private.reservation as r
inner join (
    select a.* from idem_private.policy as a
    union all
    select b.* from idem_private.retired_policy as b
) as p on r.policy = p.name
left join idem_private.unfinished as u on r.scope = u.scope and r.key = u.key and r.completed_at is null
cross join idem_private.reader() as reader
cross join lateral (
    select coalesce(r.expired_at, greatest(r.expires_at, r.completed_at + p.min_retention)) as at
) as expiry
cross join lateral (
    select
        case
            when reader.at < expiry.at and r.expired_at is null and r.completed_at is not null then 'completed'
            -- also what no attempt would find any more, but purge has not reached yet
            when r.completed_at is not null then 'expired'
            when r.released_at is not null then 'released'
            when r.leased and r.lease_until > reader.at then 'in_progress'
            when not r.leased and r.owner_xid = pg_current_xact_id_if_assigned()
                and r.owned_at >= transaction_timestamp()
                then 'in_progress'
            else 'lapsed'
        end as outcome
) as state
where reader.prefixes is null or idem_private.is_within(r.scope, reader.prefixes);

comment on view idem.keys is
'Every stored key, for operators: no bodies, no tokens. Outcome is that of idem.lookup. Where unfinished is asked for, no completed key is read.';

-- sql/policies.sql
insert into idem_private.policy (name) values ('default');

-- Brokers redeliver, and operators replay, days later.
insert into idem_private.policy (name, ttl) values ('messages', '14 days');

-- Last: what drift is measured against.
do $$
begin
    perform idem_private.renew_access();
    perform idem_private.record_objects();
end
$$;
