-- As it was written: blanks, order, repeats and the spelling of numbers too.
begin;
select plan(9);

create temp table bodies (body) as values
    ('{"b": 1,  "a": [1.0, 1e0], "b": 2}'), (E' {"a":\n1}\t'), ('0'), ('false'), ('null'), ('""'), ('[]'), ('{}'),
    (U&'{"a": "\00e9 \\u00e9 \+01F600"}');

select is((idem.json_response(200, body::json)).body, convert_to(body, 'UTF8'), body) from bodies;

select * from finish();
rollback;
