\set key random(1, 10000)
select outcome, status, headers, body from idem.reserve('client', 'stored-' || :key, sha256('request'));
