-- What is dropped below and made again keeps the rights that roles were given on it as a whole.
do $$ begin
    perform set_config('idem.grants', (
        select coalesce(jsonb_agg(to_jsonb(granted)), '[]')::text
        from (
            select
                'function' as kind, p.pronamespace::regnamespace::text as schema, p.proname as name,
                a.privilege_type as privilege, a.grantee::regrole::text as role, a.is_grantable as grantable
            from pg_proc as p, aclexplode(p.proacl) as a
            where p.pronamespace::regnamespace::text in ('idem', 'idem_private') and a.grantee not in (0, p.proowner)
            union all
            select
                'table', r.relnamespace::regnamespace::text, r.relname,
                a.privilege_type, a.grantee::regrole::text, a.is_grantable
            from pg_class as r, aclexplode(r.relacl) as a
            where r.relnamespace::regnamespace::text in ('idem', 'idem_private') and r.relkind = 'v'
                and a.grantee not in (0, r.relowner)
        ) as granted
    ), true);
end $$;
