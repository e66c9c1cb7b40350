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
