-- No index may know a column that completion writes, be it as key, in an expression or in a predicate.
begin;
select plan(2);

select is_empty(
    $$
        select d.objid::regclass, a.attname
        from pg_index as i
        inner join pg_attribute as a on a.attrelid = i.indrelid
            and a.attname in ('completed_at', 'status', 'headers', 'body')
        left join pg_depend as d
            on d.classid = 'pg_class'::regclass and d.objid = i.indexrelid
            and d.refclassid = 'pg_class'::regclass and d.refobjid = i.indrelid and d.refobjsubid = a.attnum
        where i.indrelid = 'idem_private.reservation'::regclass and (d.objid is not null or a.attnum = any(i.indkey))
    $$
);
select is(
    (
        select count(*) from pg_attribute
        where attrelid = 'idem_private.reservation'::regclass
            and attname in ('completed_at', 'status', 'headers', 'body')
    ),
    4::bigint, 'these columns are there to be looked for'
);

select * from finish();
rollback;
