do $$
declare
    granted record;
begin
    for granted in
        select g.*, coalesce(p.oid::regprocedure::text, r.oid::regclass::text) as object
        from jsonb_to_recordset(current_setting('idem.grants')::jsonb)
            as g (kind text, schema text, name text, privilege text, role text, grantable boolean)
        left join pg_proc as p
            on g.kind = 'function' and p.pronamespace::regnamespace::text = g.schema and p.proname = g.name
        left join pg_class as r
            on g.kind = 'table' and r.relnamespace::regnamespace::text = g.schema and r.relname = g.name
        where p.oid is not null or r.oid is not null
    loop
        execute format(
            'grant %s on %s %s to %s%s', granted.privilege,
            case granted.kind when 'function' then 'routine' else granted.kind end, granted.object, granted.role,
            case when granted.grantable then ' with grant option' end
        );
    end loop;
end $$;
