begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, max_attempts, tombstone) values
    ('again', 'retry', 1, '0'), ('kept', 'hold', null, '1 day');
create temp table effect (args jsonb);
create function pay(args jsonb) returns idem.response language plpgsql as
$$begin insert into effect values (args); return row(201, null, null)::idem.response; end$$;
create temp table owned as
select 'live' as key, token from idem.reserve('shop', 'live', '\x01', 'leased', '2 days') union all
select 'own', token from idem.reserve('shop', 'own', '\x01') union all
select 'held', token from idem.reserve('shop', 'held', '\x01', 'leased') union all
select 'used up', token from idem.reserve('shop', 'used up', '\x01', 'leased', policy => 'again') union all
select 'deferred', token from idem.reserve('shop', 'deferred', '\x01', 'leased', '2 days') union all
select 'completed', token from idem.reserve('shop', 'completed', '\x01', policy => 'messages') union all
select 'tombstone', token from idem.reserve('shop', 'tombstone', '\x01', policy => 'kept');
select idem.complete('shop', key, token, 200, '[["a", "b"]]', 'x') from owned where key in ('completed', 'tombstone');
select idem.defer('shop', key, token) from owned where key = 'deferred';

set local idem.clock_offset = '25 hours';
create temp table before as table idem_private.reservation;
select results_eq(
    $$select key, (idem.run('shop', key, '\x01', 'pay(jsonb)', '{}')).outcome from owned order by key$$,
    $$values
        ('completed', 'replay'), ('deferred', 'unresolved'), ('held', 'unresolved'), ('live', 'in_progress'),
        ('own', 'in_progress'), ('tombstone', 'expired'), ('used up', 'unresolved')$$,
    'the outcome'
);
select set_eq(
    $$select (idem.run('shop', key, '\x02', 'pay(jsonb)', '{}')).outcome from owned$$, array['mismatch'],
    'and a mismatch before all'
);
select set_eq('table idem_private.reservation', 'table before', 'nothing has changed');
select is_empty('table effect', 'and no handler has run');

select * from finish();
rollback;
