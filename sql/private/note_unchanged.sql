-- Where a leased reserve tries to lock a row and then starts nothing, that counts as a command, and a lock gives the
-- transaction an id: to idem_private.begin_leased it would look like somebody's write. So what the transaction listed
-- last is written again, or else the key itself, whose row it then holds. Nobody waits for either.
create or replace function idem_private.note_unchanged(scope text, key text, held boolean) returns void
language plpgsql volatile as $$
#variable_conflict use_column
declare
    previous jsonb := nullif(current_setting('idem_private.last_leased', true), '')::jsonb;
begin
    if previous is null and note_unchanged.held then
        previous := jsonb_build_array(note_unchanged.scope, note_unchanged.key);
        perform set_config('idem_private.last_leased', previous::text, true);
    end if;
    -- Anybody can set it: it must not lead to another's key.
    perform idem_private.check_scope(previous ->> 0);
    update idem_private.unfinished as u set claims = u.claims
    where u.scope = previous ->> 0 and u.key = previous ->> 1;
end
$$;

comment on function idem_private.note_unchanged(text, text, boolean) is
'The last write of a leased reserve that has locked a row, or tried to, and started nothing (see idem_private.begin_leased).';

revoke all on function idem_private.note_unchanged(text, text, boolean) from public;
