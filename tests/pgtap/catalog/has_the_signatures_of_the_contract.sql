begin;
select plan(1);

create temp table calls (name, arguments, result) as values
    (
        'reserve',
        'scope text, key text, fingerprint bytea, mode text, lease interval, fields jsonb, state jsonb, '
        'token uuid, policy text',
        'idem.reservation'
    ),
    ('complete', 'scope text, key text, token uuid, status integer, headers jsonb, body bytea', 'boolean'),
    ('release', 'scope text, key text, token uuid', 'boolean'),
    ('defer', 'scope text, key text, token uuid, retry_in interval, reason text', 'boolean'),
    ('extend', 'scope text, key text, token uuid, lease interval', 'timestamp with time zone'),
    ('checkpoint', 'scope text, key text, token uuid, recovery_point text, state jsonb', 'boolean'),
    ('lookup', 'scope text, key text', 'idem.reservation'),
    (
        'run', 'scope text, key text, fingerprint bytea, handler regprocedure, args jsonb, policy text',
        'idem.reservation'
    ),
    ('json_response', 'status integer, body json, headers jsonb', 'idem.response'),
    ('once', 'scope text, key text, policy text', 'text'),
    (
        'once_many', 'scope text, keys text[], policy text',
        'TABLE(ordinal integer, key text, outcome text)'
    ),
    ('once_undo', 'scope text, keys text[]', 'integer'),
    ('downstream_key', 'scope text, key text, step text', 'uuid'),
    (
        'claim_lapsed', 'max_rows integer, lease interval, policy text, scope text, key text',
        'SETOF idem.lapsed_reservation'
    ),
    (
        'resolve',
        'scope text, key text, action text, reason text, attempt integer, force boolean, status integer, '
        'headers jsonb, body bytea',
        'boolean'
    ),
    (
        'fingerprint', 'method text, path text, body bytea, content_type text, ignore text[], include text[]', 'bytea'
    ),
    ('fingerprint_fields', 'body bytea, content_type text, ignore text[], include text[]', 'jsonb'),
    (
        'http_reserve',
        'scope text, key_header text, method text, path text, body bytea, content_type text, mode text, '
        'lease interval, state jsonb, token uuid, policy text',
        'idem.http_reservation'
    ),
    ('http_complete', 'scope text, key text, token uuid, status integer, headers jsonb, body bytea', 'text'),
    ('policy_document', 'policy text', 'jsonb'),
    ('purge', 'max_rows integer', 'bigint'),
    ('purge_all', 'IN max_rows integer, IN max_time interval', null),
    ('forget', 'scope text, key text', 'bigint'),
    ('version', '', 'text'),
    ('grant_client', 'role name', 'void'),
    ('grant_monitor', 'role name', 'void'),
    ('grant_operator', 'role name', 'void'),
    ('revoke_access', 'role name', 'void'),
    ('bind_scope', 'role name, prefix text', 'void'),
    ('unbind_scope', 'role name, prefix text', 'void'),
    ('grant_resolver', 'role name', 'void'),
    ('enable_testing', '', 'void'),
    ('disable_testing', '', 'void');

select is(
    (
        select string_agg(
            concat(proname, '(', pg_get_function_identity_arguments(p.oid), ') ', pg_get_function_result(p.oid)),
            E'\n' order by proname
        )
        from pg_proc as p
        inner join calls as c on p.proname = c.name
        where p.pronamespace = 'idem'::regnamespace
    ),
    (select string_agg(concat(name, '(', arguments, ') ', result), E'\n' order by name) from calls)
);

select * from finish();
rollback;
