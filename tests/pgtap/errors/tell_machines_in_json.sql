-- DETAIL is one small JSON object with a code, HINT says what to do, and nothing repeats a token or a body.
begin;
select plan(34);

set local idem.single_transaction = on;
insert into idem.policies (name) values ('used');
select idem.reserve('shop', 'open', '\x01', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'used');
select idem.reserve('shop', 'leased', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve('shop', 'done', '\x01', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'done', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201, '[["a", "secret"]]', 'secret');
select idem.checkpoint('shop', 'leased', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'half', '"secret"');
create function reserves(args jsonb) returns idem.response language plpgsql as
$$begin perform idem.reserve('shop', 'k'); return row(201, null, convert_to('secret', 'UTF8'))::idem.response; end$$;
create function echo(args jsonb) returns idem.response language sql as
$$select row(201, args, convert_to('secret', 'UTF8'))::idem.response$$;
set local idem.single_transaction = off;

create temp table refused (sqlstate text, statement text);
insert into refused values
    ('IK001', $$select idem.reserve('shop', '')$$),
    ('IK001', $$select idem.reserve(null, 'k')$$),
    ('IK001', $$select idem.lookup('shop', null)$$),
    ('IK002', $$select idem.complete('shop', 'open', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 201, null, 'secret')$$),
    ('IK002', $$select idem.complete('shop', 'done', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200, null, 'secret')$$),
    ('IK002', $$select idem.extend('shop', 'leased', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb')$$),
    (
        'IK002',
        $$select idem.checkpoint('shop', 'leased', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'half', '"secret, too"')$$
    ),
    ('IK002', $$select idem.run('shop', 'k', null, 'reserves(jsonb)', '"secret"')$$),
    ('IK003', $$select idem.complete('shop', 'none', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201, null, 'secret')$$),
    ('IK004', $$select idem.release('shop', 'open', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$),
    ('IK004', $$select idem.reserve('shop', 'new', mode => 'leased')$$),
    ('IK004', $$select idem.complete('shop', 'leased', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')$$),
    ('IK005', 'set constraints all immediate'),
    ('IK006', $$select idem.reserve('shop', 'k', policy => 'none')$$),
    (
        'IK007',
        $$
            select idem.reserve(
                'shop', 'k', fields => (select jsonb_object_agg(n, 0) from generate_series(0, 1000) as n)
            )
        $$
    ),
    ('IK007', $$select idem.once_many('shop', array_fill('k'::text, array[201]))$$),
    ('22023', $$select idem.run('shop', 'k', null, 'idem.version()', '"secret"')$$),
    ('22023', $$select idem.checkpoint('shop', 'leased', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', '')$$),
    ('22023', $$select idem.reserve('shop', 'k', mode => 'saga')$$),
    ('22023', $$select idem.reserve('shop', 'k', lease => '1 minute')$$),
    ('22023', $$select idem.extend('shop', 'leased', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', '0')$$),
    ('22023', $$select idem.reserve('shop', 'k', fields => '[]')$$),
    ('22023', $$select idem.complete('shop', 'open', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 200, '{"a": "secret"}')$$),
    ('22023', $$insert into idem.policies (name, ttl) values ('new', '0')$$),
    ('22023', $$delete from idem.policies where name = 'default'$$),
    ('23503', $$delete from idem.policies where name = 'used'$$),
    ('42704', $$select idem.grant_client('idem_nobody')$$),
    ('IK003', $$select idem.resolve('shop', 'none', 'complete', 'secret', status => 201, body => 'secret')$$),
    ('IK004', $$select idem.resolve('shop', 'leased', 'complete', 'secret', status => 201, body => 'secret')$$),
    ('IK004', $$select idem.resolve('shop', 'done', 'retry', 'secret')$$),
    ('22023', $$select idem.resolve('shop', 'leased', 'secret', 'asked')$$),
    ('22023', $$select idem.resolve('shop', 'leased', 'complete', '', status => 201, body => 'secret')$$),
    ('22023', $$select idem.resolve('shop', 'leased', 'retry', 'asked', body => 'secret')$$),
    ('22023', $$select idem.claim_lapsed(0)$$);

create function pg_temp.told(statement text) returns text language plpgsql as $$
declare
    detail text;
    hint text;
begin
    execute statement;
    return 'not refused';
exception when others then
    get stacked diagnostics detail = pg_exception_detail, hint = pg_exception_hint;
    return concat_ws(
        ', ', sqlstate,
        case when detail::jsonb ->> 'code' <> '' then 'code' end,
        case when hint <> '' then 'hint' end,
        case when concat(sqlerrm, detail, hint) ~ 'secret|7365637265|aaaaaaaa|bbbbbbbb' then 'a secret' end
    );
end
$$;

select is(pg_temp.told(statement), sqlstate || ', code, hint', statement) from refused;

select * from finish();
rollback;
