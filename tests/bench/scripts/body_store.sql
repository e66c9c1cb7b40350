\set key random(1, 1000000000000)
begin;
select token from idem.reserve('client', 'key-' || :key, sha256('request')) \gset
insert into orders (amount, note) values (1, 'benchmark');
select idem.complete('client', 'key-' || :key, :token, 201, null, (select body from bodies where size = :size));
commit;
