create or replace function idem_private.moved_clock() returns timestamptz
language plpgsql volatile as $$
begin
    if idem_private.testing_enabled() then
        return clock_timestamp() + current_setting('idem.clock_offset')::interval;
    end if;
    return clock_timestamp();
end
$$;

comment on function idem_private.moved_clock() is
'The clock of a session that has set idem.clock_offset, which counts only where testing is enabled.';

revoke all on function idem_private.moved_clock() from public;
