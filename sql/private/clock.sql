-- Without the setting, which is how production runs, this is inlined to clock_timestamp().
create or replace function idem_private.clock() returns timestamptz
language sql volatile as $$
    select
        case
            when coalesce(current_setting('idem.clock_offset', true), '') = '' then clock_timestamp()
            when idem_private.testing_enabled()
                then clock_timestamp() + current_setting('idem.clock_offset', true)::interval
            else clock_timestamp()
        end
$$;

comment on function idem_private.clock() is
'The only clock: the database''s, read when called, moved by idem.clock_offset where testing is enabled.';

revoke all on function idem_private.clock() from public;
