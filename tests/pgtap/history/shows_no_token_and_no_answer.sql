begin;
select plan(1);

set local idem.single_transaction = on;

select idem.reserve(
    'shop', 'k', '\x01', 'leased', fields => '{"/pin": "secret"}', state => '"secret"', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);
select idem.checkpoint('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'half', '"secret"');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.resolve('shop', 'k', 'complete', 'asked', null, false, 201, '[["set-cookie", "secret"]]', 'secret');

select doesnt_match(
    (select string_agg(to_jsonb(h)::text, ' ') from idem.history('shop', 'k') as h), 'secret|7365637265|aaaaaaaa'
);

select * from finish();
rollback;
