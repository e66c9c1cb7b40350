create or replace function idem.once_undo(scope text, keys text[]) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    -- Keys are compared byte by byte, whatever the collation of the argument.
    wanted_keys constant text[] collate "C" := once_undo.keys;
    undone int;
begin
    perform idem_private.check_scope(once_undo.scope);
    perform idem_private.check_key(once_undo.scope, '-', 1, 1024, '');
    delete from idem_private.reservation as r
    where r.scope = once_undo.scope collate "C" and r.key = any(wanted_keys)
        and r.token is null
        -- idem_private.owned_here, written out: Citus takes no function of columns that is not immutable in a delete
        and r.owner_xid = pg_current_xact_id_if_assigned() and r.owned_at >= transaction_timestamp();
    get diagnostics undone = row_count;
    return undone;
end
$$;

comment on function idem.once_undo(text, text[]) is
'Takes back marks of idem.once and idem.once_many that the present transaction has made, as for one message of a batch that failed; returns how many. Marks of other transactions are not touched. Errors: IK001.';

revoke all on function idem.once_undo(text, text[]) from public;
