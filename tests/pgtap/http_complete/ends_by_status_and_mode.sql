begin;
select plan(49);

set local idem.single_transaction = on;
insert into idem.policies (name, release_statuses) values ('own', '{404,503}');
insert into idem.policies (name, profile) values ('stripe', 'stripe');
create temp table expected (policy, statuses, atomic, leased) as values
    ('default', '{200,201,204,301,400,402,404,409,422,499}'::int[], 'stored', 'stored'),
    ('default', '{401,403,425,429}', 'rollback', 'released'),
    ('default', '{408,500,503,599,999}', 'rollback', 'deferred'),
    ('own', '{404,503}', 'rollback', 'released'),
    ('own', '{401}', 'stored', 'stored'),
    ('own', '{500}', 'rollback', 'deferred'),
    ('stripe', '{429}', 'stored', 'stored');

select is(
    (
        select idem.http_complete('shop', key, token, s)
        from idem.http_reserve('shop', concat_ws('-', e.policy, mode, s), 'POST', '/', mode => mode, policy => e.policy)
    ),
    case mode when 'atomic' then e.atomic else e.leased end,
    concat_ws(' ', e.policy, mode, s)
)
from expected as e
cross join unnest(e.statuses) as s
cross join unnest(array['atomic', 'leased']) as mode;
select is(
    (
        select string_agg(l.outcome, ' ' order by n)
        from unnest(array[
            'default-leased-201', 'default-leased-401', 'default-leased-500', 'default-atomic-201', 'default-atomic-500'
        ]) with ordinality as k (key, n)
        cross join lateral idem.lookup('shop', k.key) as l
    ),
    'completed absent lapsed completed in_progress',
    'and that is what became of them'
);

select * from finish();
rollback;
