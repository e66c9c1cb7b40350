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
