create or replace function idem_private.check_interval(argument text, length interval) returns interval
language plpgsql stable as $$
begin
    if length is null then
        return null;
    end if;
    if not isfinite(length) or length <= interval '0' or length > interval '36500 days' then
        raise exception using
            errcode = '22023',
            message = format('%s must be above zero and at most 36500 days', check_interval.argument),
            detail = jsonb_build_object('code', 'interval_out_of_range', 'argument', check_interval.argument)::text,
            hint = 'Intervals are lengths of time such as ''30 seconds''; leave the argument out for its default.';
    end if;
    return idem_private.exact_interval(length);
end
$$;

comment on function idem_private.check_interval(text, interval) is
'A length of time given by a caller, checked and made exact; null stays null.';

revoke all on function idem_private.check_interval(text, interval) from public;
