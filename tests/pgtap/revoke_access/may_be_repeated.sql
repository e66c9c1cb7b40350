begin;
select plan(2);

create role idem_application;

select lives_ok($$select idem.revoke_access('idem_application')$$, 'a role that never had any');
select lives_ok($$select idem.revoke_access('idem_application')$$, 'again');

select * from finish();
rollback;
