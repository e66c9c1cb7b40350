begin;
select plan(2);

create schema one;
create schema two;
create table one.place (name text);
create table two.place (name text);
insert into one.place values ('one');
insert into two.place values ('two');
create function look(args jsonb) returns idem.response language plpgsql as
$$begin return row(200, null, (select convert_to(name, 'UTF8') from place))::idem.response; end$$;

create temp table answer (name text, body bytea);
set local search_path = one, public;
insert into answer select 'one', body from idem.run('shop', 'k1', null, 'look(jsonb)', '{}');
discard plans;
set local search_path = two, public;
insert into answer select 'two', body from idem.run('shop', 'k2', null, 'look(jsonb)', '{}');
set local search_path = public;

select is((select body from answer where name = 'one'), 'one');
select is((select body from answer where name = 'two'), 'two');

select * from finish();
rollback;
