create or replace function idem_private.health_of_keys()
returns table (check_name text, ok boolean, detail text, fix text)
language sql volatile as $$
with lapsed as (
    select
        count(*) as keys,
        count(*) filter (where not k.retries) as unresolved,
        count(*) filter (where not k.claimable) as given_up,
        idem_private.clock() - min(k.lapsed_at) as age,
        idem_private.clock() - min(k.lapsed_at) filter (where not k.claimable) as age_of_given_up
    from idem_private.unfinished_keys() as k
    where k.state = 'lapsed'
)

select
    'lapsed',
    coalesce(l.age < interval '15 minutes', true),
    case
        when l.keys = 0 then 'no key has an unknown outcome'
        else format(
            '%s with an unknown outcome, the oldest for %s; %s unresolved', l.keys, date_trunc('second', l.age), l.unresolved
        )
    end,
    'pyidem sweep --resolver MODULE:NAME  -- or see and decide: pyidem list'
from lapsed as l
union all
select
    'given_up',
    l.given_up = 0,
    case
        when l.given_up = 0 then 'no key waits for an operator'
        else format(
            '%s claimed so often that they wait for an operator, the oldest for %s',
            l.given_up, date_trunc('second', l.age_of_given_up)
        )
    end,
    'select * from idem.keys where unfinished and outcome = ''lapsed'' and claims >= max_claims;  -- then idem.resolve'
from lapsed as l
$$;

comment on function idem_private.health_of_keys() is 'Checks of idem.health: keys whose outcome is unknown.';

revoke all on function idem_private.health_of_keys() from public;
