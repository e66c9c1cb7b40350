create or replace function idem.checkpoint(
    scope text, key text, token uuid, recovery_point text, state jsonb default null
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    max_length constant int := 255;
    held idem_private.reservation;
    at timestamptz;
begin
    perform idem_private.check_scope(checkpoint.scope);
    if coalesce(length(checkpoint.recovery_point), 0) not between 1 and max_length
        or checkpoint.recovery_point collate "C" !~ '\S' then
        raise exception using
            errcode = '22023',
            message = 'recovery_point must be a name of 1 to 255 characters',
            detail = jsonb_build_object(
                'code', 'recovery_point_unfit', 'argument', 'recovery_point', 'limit', max_length
            )::text,
            hint = 'Name the step that is done, such as charged.';
    end if;
    held := idem_private.hold(checkpoint.scope, checkpoint.key, checkpoint.token);
    if held.recovery_point = checkpoint.recovery_point collate "C" then
        if checkpoint.state is null or checkpoint.state is not distinct from held.state then
            return false;
        end if;
        raise exception using
            errcode = 'IK002',
            message = 'this recovery point has been reached before, with another state',
            detail = jsonb_build_object('code', 'already_reached', 'attempt', held.attempt)::text,
            hint = 'The first state stays. Roll back, and reserve again to read it.';
    end if;
    at := idem_private.clock();
    update idem_private.reservation as r
    set
        recovery_point = checkpoint.recovery_point,
        state = coalesce(checkpoint.state, r.state),
        lease_until = at + r.lease
    where r.scope = held.scope and r.key = held.key;
    return true;
end
$$;

comment on function idem.checkpoint(text, text, uuid, text, jsonb) is
'Leased: this step is done, and commits with the caller''s transaction; the next attempt is told so. Renews the lease; a null state keeps the stored one. False: this token has reached this point before, in an earlier transaction; roll back the work done again. Errors: IK001, IK002, IK003, IK004, 22023.';

revoke all on function idem.checkpoint(text, text, uuid, text, jsonb) from public;
