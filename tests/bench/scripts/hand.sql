-- The floor of atomic, leased and run: insert the key, do the work, update it with the answer.
\set key random(1, 1000000000000)
begin;
insert into hand (scope, key, fingerprint) values ('client', 'key-' || :key, sha256('request')) on conflict do nothing;
insert into orders (amount, note) values (1, 'benchmark');
update hand
set completed_at = now(), status = 201, headers = '[["content-type", "application/json"]]',
    body = '{"id": 1234567, "amount": 1}'
where scope = 'client' and key = 'key-' || :key;
commit;
