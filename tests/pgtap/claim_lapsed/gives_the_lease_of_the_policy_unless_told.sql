begin;
select plan(2);

set local idem.single_transaction = on;

insert into idem.policies (name, lease) values ('slow', '10 minutes');
select idem.reserve('shop', key, mode => 'leased', lease => '1 second', policy => 'slow')
from unnest('{a,b}'::text[]) as key;
set local idem.clock_offset = '2 minutes';
select idem.claim_lapsed(key => 'a');
select idem.claim_lapsed(lease => '3 minutes');

select results_eq(
    'select key collate "default", lease from idem_private.reservation order by key',
    $$values ('a', interval '10 minutes'), ('b', interval '3 minutes')$$
);
select is(
    bool_and(lease_until between owned_at + interval '2 minutes' + lease - interval '5 seconds'
        and owned_at + interval '2 minutes' + lease + interval '5 seconds'),
    true, 'counted from the claim'
) from idem_private.reservation;

select * from finish();
rollback;
