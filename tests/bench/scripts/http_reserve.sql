\set key random(1, 1000000000000)
begin;
select token, key as stored_key from idem.http_reserve(
    'client', '"key-' || :key || '"', 'POST', '/orders', '{"amount": 1, "note": "benchmark"}', 'application/json'
) \gset
insert into orders (amount, note) values (1, 'benchmark');
select idem.http_complete(
    'client', 'key-' || :key, :token, 201, '[["content-type", "application/json"]]', '{"id": 1234567, "amount": 1}'
);
commit;
