-- Days and months added to a timestamptz depend on the session's time zone; seconds do not.
create or replace function idem_private.exact_interval(length interval) returns interval
language sql immutable as $$
    select make_interval(secs => extract(epoch from length)::double precision)
$$;

comment on function idem_private.exact_interval(interval) is
'The same length in hours, minutes and seconds: a day is 24 hours, whatever the time zone.';

revoke all on function idem_private.exact_interval(interval) from public;
