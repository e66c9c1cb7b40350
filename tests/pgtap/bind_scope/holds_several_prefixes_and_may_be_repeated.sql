begin;
\ir ../refusal.psql
select plan(4);

create role idem_application;
select idem.grant_client('idem_application');
select idem.bind_scope('idem_application', 'a');
select idem.bind_scope('idem_application', 'b');
select lives_ok($$select idem.bind_scope(role => 'idem_application', prefix => 'b')$$);
grant execute on function pg_temp.refusal(text) to idem_application;

set local role idem_application;
select is(pg_temp.refusal($$select idem.lookup('a:1', 'k')$$), 'not refused');
select is(pg_temp.refusal($$select idem.lookup('b:1', 'k')$$), 'not refused');
select is(pg_temp.refusal($$select idem.lookup('c:1', 'k')$$), '42501 scope_not_allowed');
reset role;

select * from finish();
rollback;
