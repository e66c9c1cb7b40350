-- The row is locked first; the caller reads the clock after that, since the lock may have been waited for.
create or replace function idem_private.hold(scope text, key text, token uuid) returns idem_private.reservation
language plpgsql volatile as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
begin
    select r.* into held
    from idem_private.reservation as r
    where r.scope = hold.scope collate "C" and r.key = hold.key collate "C" and r.token = hold.token
        and r.leased and r.completed_at is null and r.released_at is null
    for update;
    if not found then
        perform idem_private.refuse_owner_call(hold.scope, hold.key, hold.token, true);
    end if;
    return held;
end
$$;

comment on function idem_private.hold(text, text, uuid) is
'Locks the leased row that the token owns; raises IK003, IK002 or IK004 where it does not.';

revoke all on function idem_private.hold(text, text, uuid) from public;
