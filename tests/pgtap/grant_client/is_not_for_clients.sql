begin;
select plan(1);

create role idem_application;
select idem.grant_client('idem_application');

select is(has_function_privilege('idem_application', 'idem.grant_client(name)', 'execute'), false);

select * from finish();
rollback;
