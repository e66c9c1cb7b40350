begin;
select plan(2);

create role idem_resolver;
select idem.grant_resolver('idem_resolver');
select idem.bind_scope('idem_resolver', 'client:1');
set local idem.single_transaction = on;
select idem.reserve(s.scope, 'k', mode => 'leased', lease => '1 second')
from unnest(array['client:1', 'client:2', 'client:1:b', 'client:10']) as s (scope);
set local idem.clock_offset = '2 seconds';

create temp table claimed (scope text);
grant insert on claimed to idem_resolver;
set local role idem_resolver;
insert into claimed select scope from idem.claim_lapsed();
reset role;

select set_eq('table claimed', array['client:1', 'client:1:b'], 'a bound resolver is handed only its own');
select set_eq(
    'select scope from idem.claim_lapsed()', array['client:2', 'client:10'], 'what it could not see was left alone'
);

select * from finish();
rollback;
