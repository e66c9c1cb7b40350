-- A first attempt that left nothing behind is as if it had never been made, so its row goes and a corrected request
-- may use the key. An earlier attempt or a checkpoint may have had effects: then the row stays, with its fingerprint.
--
-- An atomic row that was left behind becomes leased: nobody is to complete it at commit any more.
create or replace function idem_private.free_key(
    held idem_private.reservation, at timestamptz, keep boolean, token uuid
) returns void
language plpgsql volatile as $$
#variable_conflict use_column
begin
    if held.attempt = 1 and held.recovery_point is null and not free_key.keep then
        delete from idem_private.reservation as r where r.scope = held.scope and r.key = held.key;
        delete from idem_private.unfinished as u where u.scope = held.scope and u.key = held.key;
        return;
    end if;
    update idem_private.reservation as r
    set token = free_key.token, leased = true, released_at = free_key.at
    where r.scope = held.scope and r.key = held.key;
    insert into idem_private.unfinished (scope, key)
    values (held.scope, held.key)
    on conflict do nothing;
end
$$;

comment on function idem_private.free_key(idem_private.reservation, timestamptz, boolean, uuid) is
'Lets the next reserve have a key whose row the caller holds locked. Keep: its row stays even after a first attempt.';

revoke all on function idem_private.free_key(idem_private.reservation, timestamptz, boolean, uuid) from public;
