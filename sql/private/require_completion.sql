-- Runs at commit (and at PREPARE TRANSACTION) for every row that a reserve inserted or took over, and reads the row as
-- it is then: a completion inside a savepoint that was rolled back does not count. A row that is gone, or that has
-- another token by now, is somebody else's event.
--
-- Where the session has said SET CONSTRAINTS ALL IMMEDIATE it runs within reserve, too early. A row as young as the
-- client's statement may be such a one: it is put off, once, by writing it again with the check deferred. That costs
-- nothing where it is not needed, as SET CONSTRAINTS in every reserve would. Where the transaction ends with that very
-- statement, the second check follows at once.
create or replace function idem_private.require_completion() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    -- What idem.complete has left; a savepoint that is rolled back takes it back. It saves the look.
    if current_setting('idem_private.completed', true) = new.token || new.scope || e'\n' || new.key then
        return null;
    end if;
    perform from idem_private.reservation as r
    where r.scope = new.scope and r.key = new.key and r.token = new.token
        and r.completed_at is null and not r.leased;
    if not found then
        return null;
    end if;

    if new.owned_at >= statement_timestamp() and not new.put_off then
        set constraints idem_private.reservation_completed deferred;
        update idem_private.reservation as r
        set token = r.token, put_off = true
        where r.scope = new.scope and r.key = new.key;
        return null;
    end if;
    raise exception using
        errcode = 'IK005',
        message = 'an atomic reservation was not completed in its transaction, which is rolled back',
        detail = jsonb_build_object('code', 'not_completed', 'scope', new.scope, 'key', new.key)::text,
        hint = 'Call idem.complete before COMMIT, or roll back to free the key.';
end
$$;

comment on function idem_private.require_completion() is 'Raises IK005 at commit for an unfinished atomic reservation.';

revoke all on function idem_private.require_completion() from public;

create constraint trigger reservation_completed
after insert or update of token on idem_private.reservation
deferrable initially deferred
for each row when (new.must_complete)
execute function idem_private.require_completion();
