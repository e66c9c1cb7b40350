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
