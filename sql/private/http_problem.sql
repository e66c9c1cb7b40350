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
