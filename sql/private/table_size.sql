-- Of a distributed table nothing is stored here: Citus adds up its sizes, and each node knows the rows of its shards.
create or replace function idem_private.table_size(out bytes numeric, out rows numeric)
language plpgsql volatile as $$
begin
    if idem_private.is_distributed() then
        execute
            'select
                pg_catalog.citus_total_relation_size(''idem_private.reservation'')::numeric,
                (
                    select sum(greatest(s.result::numeric, 0))
                    from pg_catalog.run_command_on_shards(
                        ''idem_private.reservation'',
                        $c$select reltuples from pg_catalog.pg_class where oid = ''%s''::pg_catalog.regclass$c$
                    ) as s
                    where s.success
                )'
        into bytes, rows;
        return;
    end if;
    select
        pg_total_relation_size(c.oid)::numeric,
        case
            when c.reltuples < 0 then s.n_live_tup::numeric
            when c.relpages = 0 then 0
            else c.reltuples::numeric / c.relpages
                * (pg_relation_size(c.oid) / current_setting('block_size')::int)
        end
    into bytes, rows
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_stat_all_tables as s on c.oid = s.relid
    where c.oid = 'idem_private.reservation'::regclass;
end
$$;

comment on function idem_private.table_size() is
'Bytes of all keys with their indexes, and how many keys the planner counts.';

revoke all on function idem_private.table_size() from public;
