\set key random(1, 1000000000000)
select count(*)
from idem.once_many('consumer', array(select 'key-' || :key || '-' || n from generate_series(1, 100) as n));
