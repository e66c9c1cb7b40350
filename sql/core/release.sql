-- A first attempt that left nothing behind is as if it had never been made, so its row goes and a corrected request
-- may use the key. An earlier attempt or a checkpoint may have had effects: then the row stays, with its fingerprint.
create or replace function idem.release(scope text, key text, token uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
    repeated boolean;
begin
    -- Locked, so that a repetition under way is waited for and then seen.
    select r.released_at is not null into repeated
    from idem_private.reservation as r
    where r.scope = release.scope collate "C" and r.key = release.key collate "C" and r.token = release.token
    for update;
    if repeated then
        return false;
    end if;
    held := idem_private.hold(release.scope, release.key, release.token);
    if held.attempt = 1 and held.recovery_point is null then
        delete from idem_private.reservation as r where r.scope = held.scope and r.key = held.key;
        delete from idem_private.unfinished as u where u.scope = held.scope and u.key = held.key;
    else
        update idem_private.reservation as r
        set released_at = idem_private.clock()
        where r.scope = held.scope and r.key = held.key;
    end if;
    return true;
end
$$;

comment on function idem.release(text, text, uuid) is
'Leased: the work did not happen; the key may run again. False: this token has released it before. Errors: IK001, IK002, IK003, IK004.';

revoke all on function idem.release(text, text, uuid) from public;
