begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', mode => 'leased', policy => 'again');

set local idem.clock_offset = '1 hour';
select results_eq(
    $$
        select outcome, attempt, lease_until
        from idem.reserve('shop', 'k', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb')
    $$,
    $$values ('started', 2, null::timestamptz)$$,
    'atomic'
);
select throws_ok(
    $$select idem.extend('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb')$$, 'IK004', null, 'and has no lease'
);

select * from finish();
rollback;
