create or replace function idem_private.is_lapsed(row_ idem_private.reservation, at timestamptz) returns boolean
language sql stable as $$
    select idem_private.phase(row_, interval '0', interval '0', at) = 'lapsed'
$$;

comment on function idem_private.is_lapsed(idem_private.reservation, timestamptz) is
'Whether the outcome of a row is unknown at a time; retention does not matter to that.';

revoke all on function idem_private.is_lapsed(idem_private.reservation, timestamptz) from public;
