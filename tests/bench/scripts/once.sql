\set key random(1, 1000000000000)
select idem.once('consumer', 'key-' || :key);
