begin;
select plan(2);

create role idem_ops;
select idem.grant_operator('idem_ops');
select idem.bind_scope('idem_ops', 'client:1');
select idem.once(s.scope, 'k') from unnest(array['client:1', 'client:2', 'client:1:b', 'client:10']) as s (scope);
set local idem.clock_offset = '15 days';

set local role idem_ops;
select is(idem.purge(), 2::bigint, 'a bound operator purges its own scopes');
reset role;
select set_eq('select scope from idem.keys', array['client:2', 'client:10'], 'and no other');

select * from finish();
rollback;
