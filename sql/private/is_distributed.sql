-- Nothing of Citus is named outside dynamic SQL, since it may not be there.
create or replace function idem_private.is_distributed() returns boolean
language plpgsql stable as $$
declare
    distributed boolean := false;
begin
    if to_regclass('pg_catalog.pg_dist_partition') is not null then
        execute
            'select exists (
                select from pg_catalog.pg_dist_partition as p
                where p.logicalrelid = ''idem_private.reservation''::pg_catalog.regclass
            )'
        into distributed;
    end if;
    return distributed;
end
$$;

comment on function idem_private.is_distributed() is 'Whether idem.distribute has put the keys on the nodes of a Citus cluster.';

revoke all on function idem_private.is_distributed() from public;
