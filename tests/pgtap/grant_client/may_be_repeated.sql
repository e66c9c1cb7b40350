begin;
select plan(2);

create role "Idem Application";

select lives_ok($$select idem.grant_client('Idem Application')$$, 'whatever the name of the role');
select lives_ok($$select idem.grant_client(role => 'Idem Application')$$, 'again');

select * from finish();
rollback;
