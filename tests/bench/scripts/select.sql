-- The floor of a replay: a select by primary key.
\set key random(1, 10000)
select status, headers, body from hand where scope = 'client' and key = 'stored-' || :key;
