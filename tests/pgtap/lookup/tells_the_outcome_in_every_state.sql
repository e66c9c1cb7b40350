begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, tombstone) values ('kept', '10 years');
select idem.reserve('shop', 'atomic');
select idem.reserve('shop', 'live', mode => 'leased', lease => '2 days');
select idem.reserve('shop', 'lapsed', mode => 'leased');
select idem.reserve('shop', 'released', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
update idem_private.reservation set recovery_point = 'charged' where key = 'released';
select idem.release('shop', 'released', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'tombstone', token) from idem.reserve('shop', 'tombstone', policy => 'kept');
select idem.complete('shop', 'gone', token) from idem.reserve('shop', 'gone');
set local idem.clock_offset = '25 hours';
select idem.complete('shop', 'completed', token) from idem.reserve('shop', 'completed');
create temp table states (key, outcome) as values
    ('unknown', 'absent'), ('atomic', 'in_progress'), ('live', 'in_progress'), ('lapsed', 'lapsed'),
    ('released', 'released'), ('completed', 'completed'), ('tombstone', 'expired'), ('gone', 'absent');

select results_eq($$select key, (idem.lookup('shop', key)).outcome from states$$, 'table states');
select set_eq(
    $$
        select token, downstream_key, recovery_point, state
        from states as s cross join lateral idem.lookup('shop', s.key)
    $$,
    $$values (null::uuid, null::uuid, null::text, null::jsonb)$$,
    'only an owner learns token, downstream key, recovery point and state'
);

select * from finish();
rollback;
