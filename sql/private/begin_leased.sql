-- A leased reservation must commit before the outside effect happens, so its transaction may hold nothing else that
-- a caller could want to roll back. A transaction without an id has written nothing. Where it has one, every write
-- must have been by reserve itself: reserve writes the key's row in idem_private.unfinished last, so if the command
-- that writes it again is the very next one, nobody wrote in between. Command ids count on through a rolled-back
-- savepoint, whose writes are found so too. Which row that was is kept in a setting local to the transaction, which a
-- rolled-back savepoint takes back as well.
create or replace function idem_private.begin_leased() returns void
language plpgsql volatile as $$
#variable_conflict use_column
declare
    previous jsonb;
    command_before bigint;
    command_now bigint;
begin
    perform idem_private.commit_durably();
    if pg_current_xact_id_if_assigned() is null or idem_private.single_transaction() then
        return;
    end if;

    previous := nullif(current_setting('idem_private.last_leased', true), '')::jsonb;
    if previous is not null then
        -- Anybody can set it: it must not lead to another's key.
        perform idem_private.check_scope(previous ->> 0);
        select u.cmin::text::bigint into command_before
        from idem_private.unfinished as u
        where u.scope = previous ->> 0 and u.key = previous ->> 1;
        update idem_private.unfinished as u set claims = u.claims
        where u.scope = previous ->> 0 and u.key = previous ->> 1;
        select u.cmin::text::bigint into command_now
        from idem_private.unfinished as u
        where u.scope = previous ->> 0 and u.key = previous ->> 1;
    end if;
    if command_now = command_before + 1 then
        return;
    end if;

    raise exception using
        errcode = 'IK004',
        message = 'a leased reservation must commit by itself, and this transaction has already written something',
        detail = jsonb_build_object('code', 'transaction_has_written', 'mode', 'leased')::text,
        hint = 'Reserve in a transaction of its own and commit it before the work; or use mode atomic.';
end
$$;

comment on function idem_private.begin_leased() is
'Raises IK004 where the transaction has written anything but leased reservations, and makes its commit durable.';

revoke all on function idem_private.begin_leased() from public;
