begin;
select plan(2);

select idem.complete('shop', 'k', token, 201, '[["Set-Cookie", "secret-header"]]', 'secret-body')
from idem.reserve(
    'shop', 'k', '\x01', fields => '{"/pin": "secret-field"}', state => '"secret-state"',
    token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);

select is(
    (select count(*) from information_schema.columns where table_schema = 'idem' and table_name = 'keys'
        and column_name in ('token', 'body', 'headers', 'state', 'fields', 'fingerprint')),
    0::bigint, 'there are no such columns'
);
select doesnt_match(
    (select to_jsonb(k)::text from idem.keys as k), 'secret|aaaaaaaa|7365637265742d626f6479', 'nor are they elsewhere'
);

select * from finish();
rollback;
