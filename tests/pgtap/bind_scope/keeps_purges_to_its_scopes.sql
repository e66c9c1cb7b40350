begin;
select plan(3);

create role idem_ops;
select idem.grant_operator('idem_ops');
select idem.bind_scope('idem_ops', 'client:1');
select idem.once(s.scope, 'k') from unnest(array['client:1', 'client:2', 'client:1:b', 'client:10']) as s (scope);
insert into idem_private.event (scope, key, life, at, event, attempt)
select s.scope, 'forgotten', now() - interval '1 year', now() - interval '1 year', 'claimed', 1
from unnest(array['client:1', 'client:2']) as s (scope);
set local idem.clock_offset = '15 days';

set local role idem_ops;
select is(idem.purge(), 2::bigint, 'a bound operator purges its own scopes');
reset role;
select set_eq('select scope from idem.keys', array['client:2', 'client:10'], 'and no other');
select set_eq('select scope from idem_private.event', array['client:2'], 'nor what happened to keys of others');

select * from finish();
rollback;
