-- Without the setting, which is how production runs, this is inlined to clock_timestamp(). It is on every hot path, and
-- each part of an expression is prepared anew in every transaction: hence few of them.
create or replace function idem_private.clock() returns timestamptz
language sql volatile as $$
    select
        case
            when current_setting('idem.clock_offset', true) <> '' then idem_private.moved_clock()
            else clock_timestamp()
        end
$$;

comment on function idem_private.clock() is
'The only clock: the database''s, read when called, moved by idem.clock_offset where testing is enabled.';

revoke all on function idem_private.clock() from public;
