-- The floor of once: a plain insert into a table of message ids.
\set key random(1, 1000000000000)
insert into handled (scope, key) values ('consumer', 'key-' || :key) on conflict do nothing;
