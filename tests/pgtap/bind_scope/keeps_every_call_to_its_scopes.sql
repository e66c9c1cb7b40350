-- Every routine of the API that takes a scope, as the catalog knows them: a new one cannot be forgotten. The other
-- arguments are null, so the scope must be the first thing that is looked at.
begin;
\ir ../refusal.psql
select plan(3);

create role idem_application;
grant usage on schema idem to idem_application;
grant execute on all routines in schema idem to idem_application;
grant execute on function pg_temp.refusal(text) to idem_application;
select idem.bind_scope('idem_application', 'client:1');

create temp table call as
select
    p.proname::text as name,
    format(
        case p.prokind when 'p' then 'call idem.%I(%s)' else 'select idem.%I(%s)' end,
        p.proname,
        string_agg(
            format('%s::%s', case a.name when 'scope' then '%1$L' else 'null' end, format_type(a.type, null)), ', '
            order by a.position
        )
    ) as template
from pg_proc as p
cross join lateral unnest(p.proargtypes::oid[], p.proargnames) with ordinality as a (type, name, position)
where p.pronamespace = 'idem'::regnamespace and a.type is not null and 'scope' = any(p.proargnames)
group by p.oid;
grant select on call to idem_application;

set local role idem_application;
select is_empty(
    $$
        select name, refusal
        from (select name, pg_temp.refusal(format(template, 'client:2')) as refusal from call) as tried
        where refusal <> '42501 scope_not_allowed'
    $$,
    'none goes beyond the binding'
);
select is_empty(
    $$
        select name, refusal
        from (select name, pg_temp.refusal(format(template, 'client:1')) as refusal from call) as tried
        where refusal like '42501%'
    $$,
    'none refuses what is bound'
);
select cmp_ok((select count(*) from call), '>=', 14::bigint, 'that many there are');
reset role;

select * from finish();
rollback;
