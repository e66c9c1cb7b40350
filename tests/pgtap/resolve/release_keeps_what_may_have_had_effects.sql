begin;
select plan(4);

set local idem.single_transaction = on;

insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'later', '\x01', 'leased', state => '1', policy => 'again');
select idem.checkpoint('shop', 'half', token, 'charged') from idem.reserve('shop', 'half', '\x01', 'leased');
set local idem.clock_offset = '2 minutes';
select idem.reserve('shop', 'later', '\x01', 'leased');
set local idem.clock_offset = '4 minutes';

select is(idem.resolve('shop', 'later', 'release', 'asked'), true);
select results_eq(
    $$select outcome, attempt, state from idem.reserve('shop', 'later', '\x01', 'leased')$$,
    $$values ('started', 3, '1'::jsonb)$$, 'a later attempt'
);
select is(idem.resolve('shop', 'half', 'release', 'asked'), true);
select results_eq(
    $$select outcome, attempt, recovery_point from idem.reserve('shop', 'half', '\x01', 'leased')$$,
    $$values ('started', 2, 'charged')$$, 'a recovery point'
);

select * from finish();
rollback;
