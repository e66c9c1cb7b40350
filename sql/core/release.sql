create or replace function idem.release(scope text, key text, token uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
    repeated boolean;
    at timestamptz;
begin
    perform idem_private.check_scope(release.scope);
    -- Locked, so that a repetition under way is waited for and then seen.
    select r.released_at is not null into repeated
    from idem_private.reservation as r
    where r.scope = release.scope collate "C" and r.key = release.key collate "C" and r.token = release.token
    for update;
    if repeated then
        return false;
    end if;
    held := idem_private.hold(release.scope, release.key, release.token);
    at := idem_private.clock();
    perform idem_private.free_key(held, at, false, held.token);
    perform idem_private.record_event(held, 'released', at, null, null);
    return true;
end
$$;

comment on function idem.release(text, text, uuid) is
'Leased: the work did not happen; the key may run again. False: this token has released it before. Errors: IK001, IK002, IK003, IK004.';

revoke all on function idem.release(text, text, uuid) from public;
