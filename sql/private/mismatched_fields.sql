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
