begin;
select plan(7);

select results_eq(
    'select * from idem.purge_state()',
    'values (null::timestamptz, null::timestamptz, bigint ''0'', bigint ''0'', null::timestamptz)',
    'never'
);
insert into idem.policies (name, ttl) values ('short', '1 hour');
select idem.once('shop', 'k1'), idem.once('shop', 'k2', 'short'), idem.once('shop', 'k3', 'short');
select is((select due from idem.purge_state()), bigint '0', 'nothing has expired yet');
set local idem.clock_offset = '2 hours';
select is((select due from idem.purge_state()), bigint '2', 'what has expired is due');
select is(
    (select due_since from idem.purge_state()),
    (select min(expires_at) from idem.keys where policy = 'short'),
    'since the oldest of it expired'
);
select idem.purge();
select results_eq(
    'select removed, due, due_since from idem.purge_state()',
    'values (bigint ''2'', bigint ''0'', null::timestamptz)',
    'the purge has removed it'
);
select ok(
    (select started_at <= ended_at and ended_at > clock_timestamp() + interval '119 minutes' from idem.purge_state()),
    'at the time of the clock'
);
drop index idem_private.reservation_expiry;
select results_eq(
    'select removed, due, due_since from idem.purge_state()',
    'values (bigint ''2'', null::bigint, null::timestamptz)',
    'what cannot be seen is null'
);

select * from finish();
rollback;
