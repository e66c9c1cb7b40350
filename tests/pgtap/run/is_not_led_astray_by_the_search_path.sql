-- Everything that run itself uses comes from pg_catalog, whatever comes before it on the caller's path.
begin;
select plan(2);

create schema trap;
create function trap.never(a text, b text) returns boolean language plpgsql as
$$begin raise exception 'trapped'; end$$;
create operator trap.= (leftarg = text, rightarg = text, procedure = trap.never);
create function trap.format(a text, b regproc) returns text language plpgsql as
$$begin raise exception 'trapped'; end$$;
create domain trap.regproc as text check (value = 'trapped');
create function public.pay(args jsonb) returns idem.response language sql as
'select row(201, null, null)::idem.response';

create temp table answer (outcome text, status int);
set local search_path = trap, pg_catalog, public;
insert into answer select a.outcome, a.status from idem.run('shop', 'k', null, 'public.pay(jsonb)', '{}') as a;
insert into answer select a.outcome, a.status from idem.run('shop', 'k', null, 'public.pay(jsonb)', '{}') as a;
set local search_path = '';
insert into pg_temp.answer select a.outcome, a.status from idem.run('shop', 'l', null, 'public.pay(jsonb)', '{}') as a;
set local search_path = public;

select is((select count(*) from answer where outcome = 'started' and status = 201), 2::bigint, 'it runs');
select is((select count(*) from answer where outcome = 'replay' and status = 201), 1::bigint, 'and replays');

select * from finish();
rollback;
