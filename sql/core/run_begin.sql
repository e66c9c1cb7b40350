-- The first half of idem.run. Where nothing is stored yet, the lock of the key alone holds it until the transaction
-- ends, and run_end writes the row once, finished. Everything else is as in idem.reserve, by idem.reserve.
create or replace function idem.run_begin(
    scope text, key text, fingerprint bytea, handler regprocedure, policy text default 'default'
) returns idem.reservation
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    look record;
    begun idem.reservation;
begin
    if exists (select from idem_private.scope_binding) then
        perform idem_private.check_scope(run_begin.scope);
    end if;
    if not exists (
        select from pg_catalog.pg_proc as f
        where f.oid = run_begin.handler and f.prorettype = 'idem.response'::regtype and not f.proretset
            and f.prokind = 'f' and f.pronargs = 1 and f.proargtypes[0] = 'jsonb'::regtype
    ) then
        raise exception using
            errcode = '22023',
            message = 'the handler must be a function of one jsonb that returns idem.response',
            detail = jsonb_build_object('code', 'handler_unfit', 'argument', 'handler')::text,
            hint = 'Create it as function pay(args jsonb) returns idem.response, and pass ''pay(jsonb)''.';
    end if;

    select
        p.name, p.retry_after, p.key_min_length, p.key_max_length, p.key_pattern, r.token as taken
    into look
    from idem_private.policy as p
    left join idem_private.reservation as r
        on r.scope = run_begin.scope collate "C" and r.key = run_begin.key collate "C"
    where p.name = coalesce(run_begin.policy, 'default') collate "C";
    if look.taken is null then
        if idem_private.key_fits(
            run_begin.scope, run_begin.key, look.key_min_length, look.key_max_length, look.key_pattern
        ) is not true then
            perform idem_private.check_call(run_begin.scope, run_begin.key, run_begin.policy);
        end if;
        if not pg_try_advisory_xact_lock(idem_private.lock_id(run_begin.scope, run_begin.key)) then
            return idem_private.busy(look.retry_after);
        end if;
        perform from idem_private.reservation as r
        where r.scope = run_begin.scope collate "C" and r.key = run_begin.key collate "C";
        if not found then
            perform idem_private.require_fresh_snapshot(run_begin.scope, run_begin.key);
            begun.outcome := 'started';
            begun.attempt := 1;
            return begun;
        end if;
    end if;
    return idem.reserve(run_begin.scope, run_begin.key, run_begin.fingerprint, policy => run_begin.policy);
end
$$;

comment on function idem.run_begin(text, text, bytea, regprocedure, text) is
'For idem.run alone: what idem.reserve answers, but a new key is only locked, not stored yet; its token is null. Errors: IK001, IK006, 22023.';

revoke all on function idem.run_begin(text, text, bytea, regprocedure, text) from public;
