-- The first half of idem.run, for a key of which nothing is stored: its lock alone holds it until the transaction
-- ends, and run_end writes the row once, finished. Locked first, so that one look is enough. Whether scope, key and
-- policy are acceptable is for run_end to say: what the handler did meanwhile is rolled back with it.
create or replace function idem.run_begin(scope text, key text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    locked boolean;
    stored boolean;
    bound boolean;
begin
    locked := pg_try_advisory_xact_lock(idem_private.lock_id(run_begin.scope, run_begin.key));
    select
        exists (
            select from idem_private.reservation as r
            where r.scope = run_begin.scope collate "C" and r.key = run_begin.key collate "C"
        ),
        exists (select from idem_private.scope_binding)
    into stored, bound;
    if bound then
        perform idem_private.check_scope(run_begin.scope);
    end if;
    if stored or locked is not true then
        return false;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        perform idem_private.require_fresh_snapshot(run_begin.scope, run_begin.key);
    end if;
    return true;
end
$$;

comment on function idem.run_begin(text, text) is
'For idem.run alone: true holds a new key until the transaction ends, without storing anything; false: ask idem.reserve. Errors: 42501.';

revoke all on function idem.run_begin(text, text) from public;
