-- Called when the compare-and-set of an owner call has met no row, to say why. Nothing has been changed.
create or replace function idem_private.refuse_owner_call(scope text, key text, token uuid, leased_only boolean)
returns void
language plpgsql volatile as $$
#variable_conflict use_column
declare
    found_row idem_private.reservation;
begin
    perform idem_private.check_key(refuse_owner_call.scope, refuse_owner_call.key, 1, 1024, '');
    select r.* into found_row
    from idem_private.reservation as r
    where r.scope = refuse_owner_call.scope collate "C" and r.key = refuse_owner_call.key collate "C";
    if not found then
        perform idem_private.refuse_absent(refuse_owner_call.scope, refuse_owner_call.key);
    end if;
    if found_row.token is distinct from refuse_owner_call.token or found_row.released_at is not null then
        raise exception using
            errcode = 'IK002',
            message = 'this token does not own the reservation',
            detail = jsonb_build_object('code', 'not_the_owner', 'attempt', found_row.attempt)::text,
            hint = 'Another attempt has taken it over: roll back, and reserve again to learn the outcome.';
    end if;
    if refuse_owner_call.leased_only and not found_row.leased then
        raise exception using
            errcode = 'IK004',
            message = 'the reservation is atomic',
            detail = jsonb_build_object('code', 'other_mode', 'mode', 'atomic')::text,
            hint = 'Its transaction is its lease: roll back, or roll back to a savepoint set before reserve, to free the key.';
    end if;
    if found_row.completed_at is not null then
        raise exception using
            errcode = 'IK002',
            message = 'the reservation is already completed',
            detail = jsonb_build_object('code', 'already_completed', 'attempt', found_row.attempt)::text,
            hint = 'The first answer stays. Roll back, and reserve again to read it.';
    end if;
    raise exception using
        errcode = 'IK004',
        message = 'a leased reservation cannot be completed by the transaction that made it',
        detail = jsonb_build_object('code', 'same_transaction', 'mode', 'leased')::text,
        hint = 'Commit after reserve, so that the reservation survives a crash; then do the work and complete.';
end
$$;

comment on function idem_private.refuse_owner_call(text, text, uuid, boolean) is
'Raises IK003, IK002 or IK004: why a call that needs the current token changed nothing.';

revoke all on function idem_private.refuse_owner_call(text, text, uuid, boolean) from public;
