-- I4. What is in the row does not change, and nothing of it is told.
begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, tombstone) values ('again', 'retry', '1 day');

select idem.reserve('shop', 'atomic', '\x01');
select idem.reserve('shop', 'live', '\x01', 'leased', '2 days');
select idem.reserve('shop', 'held', '\x01', 'leased');
select idem.reserve('shop', 'lapsed', '\x01', 'leased', policy => 'again');
select idem.complete('shop', 'completed', token, 201, '[]', 'x')
from idem.reserve('shop', 'completed', '\x01', policy => 'messages');
select idem.complete('shop', 'tombstone', token, 201, '[]', 'x')
from idem.reserve('shop', 'tombstone', '\x01', policy => 'again');
select idem.reserve('shop', 'released', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
update idem_private.reservation set recovery_point = 'charged' where key = 'released';
select idem.release('shop', 'released', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

set local idem.clock_offset = '25 hours';
create temp table before as table idem_private.reservation;
create temp table states (key, outcome) as values
    ('atomic', 'in_progress'), ('completed', 'completed'), ('held', 'lapsed'), ('lapsed', 'lapsed'),
    ('live', 'in_progress'), ('released', 'released'), ('tombstone', 'expired');

select results_eq(
    $$select key, (idem.lookup('shop', key)).outcome from states$$, 'table states', 'one key in every state'
);
select set_eq(
    $$
        select
            a.outcome, a.token, a.downstream_key, a.recovery_point, a.state, a.status, a.headers, a.body, a.mismatched
        from states as s cross join lateral idem.reserve('shop', s.key, '\x02') as a
    $$,
    $$values (
        'mismatch', null::uuid, null::uuid, null::text, null::jsonb, null::int, null::jsonb, null::bytea, null::text[]
    )$$,
    'an atomic attempt'
);
select set_eq(
    $$select (idem.reserve('shop', key, '\x02', 'leased')).outcome from states$$, array['mismatch'], 'a leased attempt'
);
select set_eq(
    $$
        select (idem.reserve(scope, key, '\x02', case when leased then 'leased' end, token => token)).outcome
        from before
    $$,
    array['mismatch'], 'the owner itself'
);
select set_eq('table idem_private.reservation', 'table before', 'nothing has changed');

select * from finish();
rollback;
