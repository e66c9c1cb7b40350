begin;
select plan(9);

insert into idem.policies (name, tombstone) values ('buried', '10 days');
select idem.complete('shop', 'k', token, 201, '[["a", "b"]]', 'secret')
from idem.reserve('shop', 'k', '\x01', fields => '{"/a": "h"}', state => '{"card": 7}', policy => 'buried');
create temp table answer as select * from idem.reserve('shop', 'k', '\x01');
create function pg_temp.answers() returns setof text language sql as $$
    select concat_ws(' ', outcome, attempt, status, created_at, completed_at, expires_at)
    from idem.reserve('shop', 'k', '\x01')
    union all select concat_ws(' ', outcome, attempt, status, created_at, completed_at, expires_at)
    from idem.lookup('shop', 'k')
    union all select (idem.reserve('shop', 'k', '\x02')).outcome
    union all select idem.once('shop', 'k')
    union all select concat_ws(' ', outcome, completed_at, expires_at) from idem.keys
$$;

set local idem.clock_offset = '25 hours';
create temp table before as select * from pg_temp.answers() with ordinality;
select is(idem.purge(), 1::bigint, 'it counts as removed');
select results_eq(
    'select * from pg_temp.answers() with ordinality', 'select * from before', 'every call answers as before'
);
select results_eq(
    $$
        select fingerprint, fields is null and state is null and status is null and headers is null and body is null
        from idem_private.reservation
    $$,
    $$values ('\x01'::bytea, true)$$, 'the key and its fingerprint are all that is left'
);
select is(idem.purge(), 0::bigint, 'once');
set local idem.clock_offset = '10 days 23 hours';
select is(idem.purge(), 0::bigint, 'it stays as long as the policy says');
select is((idem.reserve('shop', 'k', '\x01')).outcome, 'expired');
set local idem.clock_offset = '11 days 1 minute';
select is((idem.lookup('shop', 'k')).outcome, 'absent', 'no longer');
select is(idem.purge(), 1::bigint);
select is_empty('select * from idem_private.reservation', 'then it goes');

select * from finish();
rollback;
