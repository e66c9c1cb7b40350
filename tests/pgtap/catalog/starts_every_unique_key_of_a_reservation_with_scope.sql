begin;
select plan(2);

select is(
    (
        select array_agg(a.attname::text order by k.position)
        from pg_index as i
        cross join lateral unnest(i.indkey) with ordinality as k (attnum, position)
        inner join pg_attribute as a on i.indrelid = a.attrelid and k.attnum = a.attnum
        where i.indrelid = 'idem_private.reservation'::regclass and i.indisprimary
    ),
    array['scope', 'key'], 'the primary key'
);
select is_empty(
    $$
        select i.indexrelid::regclass
        from pg_index as i
        inner join pg_attribute as a on i.indrelid = a.attrelid and i.indkey[0] = a.attnum
        where i.indisunique and a.attname <> 'scope'
            and exists (
                select from pg_attribute as s where s.attrelid = i.indrelid and s.attname = 'scope'
            )
            and i.indrelid in (select oid from pg_class where relnamespace = 'idem_private'::regnamespace)
    $$,
    'and any other'
);

select * from finish();
rollback;
