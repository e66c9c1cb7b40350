begin;
select plan(2);

create role idem_sweeper;
select idem.grant_resolver('idem_sweeper');

select is(has_function_privilege('idem_sweeper', 'idem.grant_resolver(name)', 'execute'), false);
select throws_ok($$select idem.grant_resolver('idem_nobody')$$, '42704', null, 'for a role that exists');

select * from finish();
rollback;
