\set key random(1, 1000000000000)
select outcome, status from idem.run('client', 'key-' || :key, sha256('request'), 'pay(jsonb)', '{"amount": 1}');
