\set key random(1, 10000)
select outcome from idem.reserve('client', 'stored-' || :key, sha256('another request'));
