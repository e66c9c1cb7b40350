-- The id alone may belong to a transaction of the server that this database was restored from.
create or replace function idem_private.owned_here(owner_xid xid8, owned_at timestamptz) returns boolean
language sql stable as $$
    select coalesce(owner_xid = pg_current_xact_id_if_assigned() and owned_at >= transaction_timestamp(), false)
$$;

comment on function idem_private.owned_here(xid8, timestamptz) is
'Whether the present transaction took the row by reserve or takeover.';

revoke all on function idem_private.owned_here(xid8, timestamptz) from public;
