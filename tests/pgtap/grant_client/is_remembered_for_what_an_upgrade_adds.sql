begin;
select plan(3);

create role idem_application;
create role idem_former;
create role idem_stranger;
select idem.grant_client('idem_application');
select idem.grant_client('idem_former');
select idem.revoke_access('idem_former');
revoke execute on function idem.version() from idem_application;
grant usage on schema idem to idem_stranger;

-- the last step of every migration
select idem_private.renew_access();

select is(has_function_privilege('idem_application', 'idem.version()', 'execute'), true, 'who holds the grant gets it');
select is(has_function_privilege('idem_former', 'idem.version()', 'execute'), false, 'who held it does not');
select is(has_function_privilege('idem_stranger', 'idem.version()', 'execute'), false, 'nor who never did');

select * from finish();
rollback;
