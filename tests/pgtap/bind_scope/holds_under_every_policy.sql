-- The hot paths learn from a policy that there are bindings: from one that is made later, too.
begin;
\ir ../refusal.psql
select plan(7);

create role idem_application;
select idem.grant_client('idem_application');
grant execute on function pg_temp.refusal(text) to idem_application;
select idem.complete('client:2', 'stored', token) from idem.reserve('client:2', 'stored');
select idem.bind_scope('idem_application', 'client:1');
insert into idem.policies (name) values ('later');
select idem.complete('client:2', 'stored later', token) from idem.reserve('client:2', 'stored later', policy => 'later');

set local role idem_application;
select is(pg_temp.refusal(statement), '42501 scope_not_allowed', statement)
from unnest(array[
    $$select idem.reserve('client:2', 'stored')$$,
    $$select idem.reserve('client:2', 'stored later', policy => 'later')$$,
    $$select idem.reserve('client:2', 'new', policy => 'later')$$,
    $$select idem.once('client:2', 'new', 'later')$$,
    $$select idem.run_end('client:2', 'new', null, null, row(200, null, null), 'later')$$
]) as statement;
select is((idem.reserve('client:1', 'k', policy => 'later')).outcome, 'started', 'its own scope');

reset role;
select idem.unbind_scope('idem_application');
set local role idem_application;
select is((idem.reserve('client:2', 'stored')).outcome, 'replay', 'when it is bound no more');

select * from finish();
rollback;
