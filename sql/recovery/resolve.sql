-- Locks the row first, which may mean to wait, and judges it by the clock after that. Whatever the decision, the token
-- is replaced: an owner or a resolver that comes back learns that it is not its key any more.
create or replace function idem.resolve(
    scope text,
    key text,
    action text,
    reason text,
    attempt int default null,
    force boolean default false,
    status int default null,
    headers jsonb default null,
    body bytea default null
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    held idem_private.reservation;
    settings idem_private.policy;
    new_token constant uuid := gen_random_uuid();
    at timestamptz;
    phase text;
begin
    perform idem_private.check_scope(resolve.scope);
    perform idem_private.check_resolution(
        resolve.scope, resolve.key, resolve.action, resolve.reason, resolve.status, resolve.headers, resolve.body
    );
    select r.* into held
    from idem_private.reservation as r
    where r.scope = resolve.scope collate "C" and r.key = resolve.key collate "C"
    for update;
    settings := idem_private.policy_of(held.policy);
    at := idem_private.clock();
    phase := idem_private.phase(held, settings.min_retention, settings.tombstone, at);
    if held.scope is null or phase = 'absent' then
        perform idem_private.refuse_absent(resolve.scope, resolve.key);
    elsif resolve.attempt <> held.attempt then
        return false;
    elsif phase in ('completed', 'expired')
        or phase <> 'lapsed' and not (held.leased and coalesce(resolve.force, false)) then
        perform idem_private.refuse_resolution(held, phase);
    end if;

    if phase = 'lapsed' then
        perform idem_private.record_lapse(held);
    end if;
    perform idem_private.record_event(
        held, 'resolved', at, resolve.reason,
        jsonb_build_object(
            'action', resolve.action, 'status', resolve.status, 'forced', nullif(phase <> 'lapsed', false)
        )
    );
    if resolve.action = 'complete' then
        update idem_private.reservation as r
        set
            token = new_token,
            released_at = null,
            completed_at = at,
            status = resolve.status,
            headers = resolve.headers,
            body = resolve.body
        where r.scope = held.scope and r.key = held.key;
        delete from idem_private.unfinished as u where u.scope = held.scope and u.key = held.key;
    else
        perform idem_private.free_key(held, at, resolve.action = 'retry', gen_random_uuid());
    end if;
    perform idem_private.commit_durably();
    return true;
end
$$;

comment on function idem.resolve(text, text, text, text, int, boolean, int, jsonb, bytea) is
'An operator decides about a lapsed key, for a reason that is recorded with the role: complete stores the given answer, release says that the work did not happen, retry lets the next reserve start the next attempt. False: the key is at another attempt than the given one. Force: though somebody may be at work on it. Errors: IK001, IK003, IK004, 22023.';

revoke all on function idem.resolve(text, text, text, text, int, boolean, int, jsonb, bytea) from public;
