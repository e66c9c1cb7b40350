begin;
select plan(1);

insert into idem.policies (name, methods) values ('mine', '{post,Put,DELETE}');

select is((select methods from idem.policies where name = 'mine'), array['POST', 'PUT', 'DELETE']);

select * from finish();
rollback;
