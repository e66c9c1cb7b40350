begin;
select plan(20);
\ir ../refusal.psql

select idem.http_reserve('shop', 'k', 'POST', '/', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create function pg_temp.refused(status int, headers jsonb) returns text language sql as $$
    select pg_temp.refusal(format(
        $x$select idem.http_complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', %L, %L)$x$, status, headers
    ))
$$;

select is(pg_temp.refused(status, null), '22023 status_out_of_range', concat('status ', status))
from unnest(array[0, 99, 1000, -200, null]) as status;
select is(pg_temp.refused(200, headers), '22023 headers_not_pairs', headers::text)
from unnest(array['{}', '[["a"]]', '[["a", 1]]', 'null', '["a", "b"]', '[["a", null]]']::jsonb[]) as headers;
select is(pg_temp.refused(200, headers), '22023 header_unfit', headers::text)
from unnest(array[
    '[["", "b"]]', '[["a b", "c"]]', '[["a:", "b"]]', '[["a\n", "b"]]', '[["a", "b\r\nSet-Cookie: c"]]',
    '[["a", "b\n"]]',
    '[["ok", "ok"], ["\u00e9", "b"]]'
]::jsonb[]) as headers;
select is(
    pg_temp.refused(200, '[["x_Y.1!#$%&''*+^`|~-", "any \u00e9 \" , ; \t value"]]'), 'not refused',
    'any value on one line'
);
select is(
    pg_temp.refusal($$select idem.http_complete('shop', null, null, null)$$), '22023 status_out_of_range',
    'also where nothing was reserved'
);

select * from finish();
rollback;
