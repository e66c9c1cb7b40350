-- IK005
begin;
select plan(3);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', mode => 'leased', policy => 'again');
set local idem.clock_offset = '1 hour';

set constraints all immediate;
select results_eq(
    $$
        select outcome, attempt
        from idem.reserve('shop', 'k', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', policy => 'again')
    $$,
    $$values ('started', 2)$$, 'the takeover is not refused at once'
);
select throws_ok('set constraints all immediate', 'IK005', null, 'but checked');
select idem.complete('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
select lives_ok('set constraints all immediate', 'completion satisfies the check');

select * from finish();
rollback;
