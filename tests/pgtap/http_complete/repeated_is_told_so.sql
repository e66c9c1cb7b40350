begin;
select plan(7);

set local idem.single_transaction = on;
select idem.http_reserve('shop', key, 'POST', '/', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')
from unnest(array['k', 'd']) as key;

create function pg_temp.complete(key text, status int, headers jsonb = null, body bytea = null)
returns text language sql as $$
    select idem.http_complete('shop', key, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', status, headers, body)
$$;
select is(pg_temp.complete('k', 201, '[["Date", "today"], ["A", "b"]]', 'x'), 'stored', 'the first time');
select is(pg_temp.complete('k', 201, '[["Date", "tomorrow"], ["A", "b"]]', 'x'), 'repeated', 'the same that is stored');
select throws_ok($$select pg_temp.complete('k', 200, '[["A", "b"]]', 'x')$$, 'IK002', null, 'another status');
select throws_ok($$select pg_temp.complete('k', 201, '[["A", "b"]]', 'y')$$, 'IK002', null, 'another body');
select throws_ok($$select pg_temp.complete('k', 503)$$, 'IK002', null, 'an answer that is not final');
select is(pg_temp.complete('d', 500), 'deferred', 'a failure');
select is(pg_temp.complete('d', 500), 'deferred', 'may be told again');

select * from finish();
rollback;
