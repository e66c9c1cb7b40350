-- What belongs to one connection or one answer is not stored, whether the policy names it or a Connection header does;
-- nor are the marks of a replay, which are ours to set.
create or replace function idem_private.stored_headers(headers jsonb, settings idem_private.policy) returns jsonb
language sql immutable as $$
    select coalesce(jsonb_agg(h.pair order by h.position), '[]')
    from jsonb_array_elements(headers) with ordinality as h (pair, position)
    where lower((h.pair ->> 0) collate "C") <> all(
        settings.drop_headers
        || array['idempotency-body-omitted', lower(idem_private.replay_header(settings) collate "C")]
        || array(
            select lower(btrim(nominated.name, E' \t') collate "C")
            from jsonb_array_elements(headers) as c (pair)
            cross join lateral unnest(string_to_array(c.pair ->> 1, ',')) as nominated (name)
            where lower((c.pair ->> 0) collate "C") = 'connection'
        )
    )
$$;

comment on function idem_private.stored_headers(jsonb, idem_private.policy) is
'The headers of an answer that a replay repeats, in order.';

revoke all on function idem_private.stored_headers(jsonb, idem_private.policy) from public;
