begin;
select plan(3);

select is((idem.json_response(204, null)).body, null, 'no body');
select is((idem.json_response(204, null)).headers, '[]', 'has no type');
select is((idem.json_response(204, null, '[["a", "b"]]')).headers, '[["a", "b"]]', 'beside other headers');

select * from finish();
rollback;
