begin;
select plan(5);

create function as_told(args jsonb) returns idem.response language sql as
$$select row(200, args, null)::idem.response$$;

select throws_ok(
    format($$select idem.run('shop', 'k', null, 'as_told(jsonb)', %L)$$, headers), '22023', null, headers
)
from unnest(array['null', '{"a": "b"}', '["a", "b"]', '[["a", 1]]']) as headers;
select is((idem.lookup('shop', 'k')).outcome, 'absent');

select * from finish();
rollback;
