-- I6
begin;
select plan(12);

set local idem.single_transaction = on;

create function pg_temp.calls(key text) returns setof text language sql as $$
    select format('select idem.%s', call)
    from unnest(array[
        format('complete(''shop'', %L, ''aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'', 201)', key),
        format('release(''shop'', %L, ''aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'')', key),
        format('defer(''shop'', %L, ''aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'')', key),
        format('extend(''shop'', %L, ''aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'')', key)
    ]) as call
$$;
select idem.reserve('shop', key, mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), idem.checkpoint('shop', key, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'half'),
    idem.defer('shop', key, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), idem.resolve('shop', key, key, 'asked', status => case key when 'complete' then 201 end)
from unnest('{complete,release,retry}'::text[]) as key;

-- Completion with the very answer that is stored, too: it was not by this token.
select throws_ok(call, 'IK002', null, call)
from unnest('{complete,release,retry}'::text[]) as key, pg_temp.calls(key) as call;

select * from finish();
rollback;
