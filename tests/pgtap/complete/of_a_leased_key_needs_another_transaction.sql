begin;
select plan(4);

insert into idem.policies (name, on_lapse) values ('again', 'retry');
set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'again');
set local idem.single_transaction = off;

select throws_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201)$$, 'IK004', null,
    'than the one that reserved it'
);
savepoint before;
select throws_ok(
    $$select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201)$$, 'IK004', null,
    'a savepoint is no transaction'
);
set local idem.clock_offset = '1 hour';
set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
set local idem.single_transaction = off;
select throws_ok(
    $$select idem.complete('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb', 201)$$, 'IK004', null,
    'than the one that took it over'
);
select is((idem.lookup('shop', 'k')).outcome, 'in_progress', 'nothing has changed');

select * from finish();
rollback;
