create or replace function idem_private.reader(out at timestamptz, out prefixes text[])
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select idem_private.clock(), idem_private.bound_prefixes()
$$;

comment on function idem_private.reader() is
'For readers of idem.keys: the time, and the prefixes of the scopes that they may see.';

revoke all on function idem_private.reader() from public;
