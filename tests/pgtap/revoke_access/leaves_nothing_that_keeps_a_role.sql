begin;
select plan(4);

create role idem_application;
select idem.grant_client('idem_application');
select idem.grant_operator('idem_application');
select idem.bind_scope('idem_application', 'client:');
grant usage on schema idem_private to idem_application;
grant select on idem_private.reservation to idem_application with grant option;
grant select (name) on idem.policies to idem_application;
grant usage on type idem.response to idem_application;
grant execute on function idem_private.clock() to idem_application;
create role idem_friend;
set local role idem_application;
grant select on idem_private.reservation to idem_friend;
reset role;

select lives_ok($$select idem.revoke_access('idem_application')$$);
select lives_ok($$drop role idem_application$$, 'no grant of any kind is left');
select is(
    has_table_privilege('idem_friend', 'idem_private.reservation', 'select'), false, 'nor what it had passed on'
);
select is_empty(
    $$select role::text from idem_private.access union all select role::text from idem_private.scope_binding$$,
    'nor a record of it'
);

select * from finish();
rollback;
