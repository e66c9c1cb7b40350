-- A replay of one of so many stored keys.
\set key random(1, :keys)
select outcome, status, headers, body from idem.reserve('client', :prefix::text || :key::text, sha256('request'));
