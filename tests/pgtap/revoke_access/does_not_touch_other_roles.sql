begin;
select plan(2);

create role idem_application;
create role idem_other;
select idem.grant_client('idem_application');
select idem.grant_client('idem_other');
select idem.bind_scope('idem_other', 'client:');
select idem.revoke_access('idem_application');

select is(has_function_privilege('idem_other', 'idem.version()', 'execute'), true, 'they keep their grants');
select is(
    (select string_agg(role || ' ' || prefix, ', ') from idem_private.scope_binding), 'idem_other client:',
    'and bindings'
);

select * from finish();
rollback;
