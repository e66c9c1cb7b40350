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
