begin;
select plan(3);

create function echo(args jsonb) returns idem.response language sql as
$$select row(200, null, convert_to(coalesce(args::text, 'none'), 'UTF8'))::idem.response$$;

select is((idem.run('shop', 'a', null, 'echo(jsonb)', '{"a": [1]}')).body, '{"a": [1]}');
select is((idem.run('shop', 'b', null, 'echo(jsonb)', null)).body, 'none', 'SQL null');
select is((idem.run('shop', 'c', null, 'echo(jsonb)', 'null')).body, 'null', 'JSON null');

select * from finish();
rollback;
