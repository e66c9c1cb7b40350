-- Names that need quotes, other functions of the same name, and another schema of the search_path.
begin;
select plan(4);

create schema "Other shop";
create function pay(args jsonb) returns idem.response language sql as 'select row(1, null, null)::idem.response';
create function pay(args json) returns idem.response language sql as 'select row(2, null, null)::idem.response';
create function pay(args text) returns idem.response language sql as 'select row(3, null, null)::idem.response';
create function "Other shop".pay(args jsonb) returns idem.response language sql as
'select row(4, null, null)::idem.response';
create function "Other shop"."it's; pay"(args jsonb) returns idem.response language sql as
'select row(5, null, null)::idem.response';
create function pg_temp.pay(args jsonb) returns idem.response language sql as
'select row(6, null, null)::idem.response';

select is((idem.run('shop', 'a', null, 'pay(jsonb)', '{}')).status, 1, 'the one of these arguments');
select is((idem.run('shop', 'b', null, '"Other shop".pay(jsonb)', '{}')).status, 4, 'of this schema');
select is((idem.run('shop', 'c', null, '"Other shop"."it''s; pay"(jsonb)', '{}')).status, 5, 'by a quoted name');
select is((idem.run('shop', 'd', null, 'pg_temp.pay(jsonb)', '{}')).status, 6, 'of the session');

select * from finish();
rollback;
