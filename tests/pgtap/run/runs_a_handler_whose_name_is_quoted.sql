-- As a session with quote_all_identifiers on writes every name and type.
begin;
select plan(3);

create function public.pay(args jsonb) returns idem.response language sql as
'select row(201, null, null)::idem.response';
create function public."Pay (jsonb)"(args jsonb) returns idem.response language sql as
'select row(202, null, null)::idem.response';
create schema other;
create domain other.jsonb as text;

set local quote_all_identifiers = on;
select is((idem.run('shop', 'k', null, 'public.pay(jsonb)', '{}')).status, 201, 'the type alone');
select is((idem.run('shop', 'l', null, 'public."Pay (jsonb)"(jsonb)', '{}')).status, 202, 'an odd name');
set local search_path = other, pg_catalog, public;
select is((idem.run('shop', 'm', null, 'public.pay(pg_catalog.jsonb)', '{}')).status, 201, 'the type with its schema');

select * from finish();
rollback;
