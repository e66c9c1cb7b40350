begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem_private.reservation (
    scope, key, policy, created_at, expires_at, owned_at, token, attempt, leased, completed_at
)
select 'shop', n || '', 'default', now(), now() + interval '1 day', now(), gen_random_uuid(), 1, false, now()
from generate_series(1, 5000) as n;
select idem.reserve('shop', key, mode => 'leased') from unnest('{a,b,c}'::text[]) as key;
set local idem.clock_offset = '2 minutes';

create temp table reads as
select seq_tup_read, idx_tup_fetch
from pg_stat_xact_all_tables where relid = 'idem_private.reservation'::regclass;
select is(count(*), 3::bigint) from idem.claim_lapsed();
select is(
    s.seq_tup_read - r.seq_tup_read + s.idx_tup_fetch - r.idx_tup_fetch < 30, true,
    s.seq_tup_read - r.seq_tup_read || ' by scans, ' || s.idx_tup_fetch - r.idx_tup_fetch || ' by index'
)
from pg_stat_xact_all_tables as s, reads as r
where s.relid = 'idem_private.reservation'::regclass;

select * from finish();
rollback;
